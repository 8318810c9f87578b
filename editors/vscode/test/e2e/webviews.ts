/**
 * What webviews show: reports, charts, pages. A preview may replace its document at any time, and one that was hidden may
 * linger, so that the frame is looked up anew at every attempt, among those that can be seen.
 */
import type { Frame, Locator, Page } from 'playwright-core';
import { ATTEMPT, eventually } from './patience';

/** Pixels of strong colour, or of a dark or light shade. */
export type Shade = 'colour' | 'dark' | 'light';

/** Waits until a webview shows an element that matches, with the text where one is given. */
export function shows(page: Page, selector: string, text?: string | RegExp): Promise<void> {
  return act(page, selector, text, () => Promise.resolve(true));
}

/** Clicks an element of a webview until the click had its effect there. */
export function clickIn(page: Page, selector: string, effect: (frame: Frame) => Promise<boolean>): Promise<void> {
  return act(page, selector, undefined, async (element, frame) => {
    await element.click({ timeout: ATTEMPT });
    return effect(frame);
  });
}

/** Waits until the picture of an element of a webview has at least `least` pixels of a shade. */
export function hasPixels(page: Page, selector: string, least: number, shade: Shade = 'colour'): Promise<void> {
  return act(page, selector, undefined, async (element) => {
    const picture = await element.screenshot({ timeout: ATTEMPT });
    const found = await page.evaluate(countPixels, { picture: picture.toString('base64'), shade });
    if (found < least) {
      throw new Error(`only ${found} of ${least} ${shade} pixels are there`);
    }
    return true;
  });
}

/** The text of the first element that matches. */
export async function textIn(page: Page, selector: string): Promise<string> {
  let text = '';
  await act(page, selector, undefined, async (element) => {
    text = (await element.textContent({ timeout: ATTEMPT })) ?? '';
    return true;
  });
  return text;
}

function act(page: Page, selector: string, text: string | RegExp | undefined, does: (element: Locator, frame: Frame) => Promise<boolean>): Promise<void> {
  return eventually(`a webview with ${selector}${text === undefined ? '' : ` that says ${String(text)}`}`, async () => {
    for (const frame of page.frames()) {
      const element = frame.locator(selector, text === undefined ? {} : { hasText: text }).first();
      if (frame !== page.mainFrame() && (await element.count().catch(() => 0)) > 0 && (await inSight(frame))) {
        return does(element, frame);
      }
    }
    return false;
  });
}

/** True when the frame and those around it are drawn. */
async function inSight(frame: Frame): Promise<boolean> {
  for (let one: Frame | null = frame; one?.parentFrame() != null; one = one.parentFrame()) {
    const element = await one.frameElement();
    if (!(await element.isVisible())) {
      return false;
    }
  }
  return true;
}

/** Runs in the page: counts pixels of strong colour, of a dark or of a light shade. */
async function countPixels({ picture, shade }: { picture: string; shade: Shade }): Promise<number> {
  const bytes = Uint8Array.from(atob(picture), (char) => char.charCodeAt(0));
  const bitmap = await createImageBitmap(new Blob([bytes], { type: 'image/png' }));
  const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
  const context = canvas.getContext('2d');
  if (context === null) {
    return 0;
  }
  context.drawImage(bitmap, 0, 0);
  const { data } = context.getImageData(0, 0, bitmap.width, bitmap.height);
  let count = 0;
  for (let i = 0; i < data.length; i += 4) {
    const [r = 0, g = 0, b = 0] = data.subarray(i, i + 3);
    const high = Math.max(r, g, b);
    const low = Math.min(r, g, b);
    if (shade === 'colour' ? high - low > 70 : shade === 'dark' ? high < 70 : low > 200) {
      count += 1;
    }
  }
  return count;
}
