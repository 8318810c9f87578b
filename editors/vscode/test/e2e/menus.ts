/**
 * Menus and the quick input. Both go as soon as something else takes the focus, and a menu ignores the mouse at first: each
 * step is tried again until the window shows that it was taken, and never once it was.
 */
import type { Locator, Page } from 'playwright-core';
import { ATTEMPT, eventually, seen, settle } from './patience';

/** VS Code's menus ignore the mouse for 100 ms, so that the click which opened them chooses nothing. */
const MENU_DEAF = 150;

/** The box of the palette, of quick picks and of questions. */
export function quickInput(page: Page): Locator {
  return page.locator('.quick-input-widget .quick-input-box input.input');
}

/** A row of the open quick pick. */
export function quickRow(page: Page, label: string): Locator {
  return page.locator('.quick-input-list .monaco-list-row', { hasText: label }).first();
}

/** Clicks a row that takes its list away. False when the click was not taken: it may be made again. */
async function choose(page: Page, row: Locator, stillOpen: () => Promise<boolean>): Promise<boolean> {
  try {
    await row.click({ timeout: ATTEMPT });
  } catch (error) {
    // The time ran out before the mouse was moved (the list went, or was drawn anew), or with the click made.
    if (!(error instanceof Error && error.message.includes('performing click action'))) {
      return false;
    }
  }
  return closed(page, stillOpen);
}

/** True once the list that was answered is gone: at once in the window itself, a moment later where an extension closes it. */
async function closed(page: Page, stillOpen: () => Promise<boolean>): Promise<boolean> {
  for (const deadline = Date.now() + ATTEMPT; ; ) {
    await settle(page);
    if (!(await stillOpen())) {
      return true;
    }
    if (Date.now() > deadline) {
      return false;
    }
  }
}

/** Runs a command from the palette, once. */
export async function runCommand(page: Page, title: string): Promise<void> {
  const input = quickInput(page);
  const typed = `>${title}`;
  const asks = async (): Promise<boolean> => (await input.isVisible()) && (await input.inputValue({ timeout: ATTEMPT })) === typed;
  await eventually(`the command "${title}"`, async () => {
    // The palette lists what is there when it opens: a window that is still coming up may know our commands a moment later.
    await page.keyboard.press('F1');
    await input.fill(typed, { timeout: ATTEMPT });
    const row = quickRow(page, title);
    if (await seen(row)) {
      return choose(page, row, asks);
    }
    await page.keyboard.press('Escape');
    throw new Error('the palette does not know it');
  });
}

/** Chooses an entry of the open quick pick. */
export async function pickEntry(page: Page, label: string): Promise<void> {
  const row = quickRow(page, label);
  await row.waitFor();
  await eventually(`the entry "${label}"`, () => choose(page, row, () => row.isVisible()));
}

/** Types a question into the question box and asks it, once. */
export async function answerBox(page: Page, text: string): Promise<void> {
  const input = quickInput(page);
  await eventually(`the question "${text}"`, async () => {
    await input.fill(text, { timeout: ATTEMPT });
    // The box offers what was typed as its first entry: from then on Enter asks it.
    if (!(await seen(page.locator('.quick-input-list .monaco-list-row.focused', { hasText: text })))) {
      return false;
    }
    await input.press('Enter', { timeout: ATTEMPT });
    return closed(page, async () => (await input.isVisible()) && (await input.inputValue({ timeout: ATTEMPT })) === text);
  });
}

/** Clicks an entry of an element's context menu, once. */
export async function contextMenu(page: Page, element: Locator, entry: string): Promise<void> {
  const menu = page.locator('.context-view .monaco-menu');
  const item = menu.locator('.action-item', { has: page.locator('.action-label', { hasText: entry }) }).first();
  await eventually(`the entry "${entry}" of the context menu`, async () => {
    if (!(await item.isVisible())) {
      if (await menu.first().isVisible()) {
        await page.keyboard.press('Escape');
      }
      await element.click({ button: 'right', timeout: ATTEMPT });
      if (!(await seen(item))) {
        return false;
      }
    }
    await settle(page, MENU_DEAF);
    return choose(page, item, () => item.isVisible());
  });
}

/** Closes whatever lies over the window: menus, quick input, dialogs, hovers. */
export async function closeOverlays(page: Page): Promise<void> {
  const overlays = page.locator('.context-view .monaco-menu, .quick-input-widget, .monaco-dialog-box, .monaco-hover').filter({ visible: true });
  // A click that was given up may have left its keys pressed.
  for (const key of ['Control', 'Shift']) {
    await page.keyboard.up(key);
  }
  await eventually('closing menus and dialogs', async () => {
    if ((await overlays.count()) === 0) {
      return true;
    }
    await page.keyboard.press('Escape');
    // A hover stays as long as the pointer rests on it.
    await page.mouse.move(0, 0);
    await settle(page);
    return false;
  });
}
