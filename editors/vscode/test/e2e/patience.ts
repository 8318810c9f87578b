/**
 * Waiting without guessing: an editor redraws, moves the focus and builds its lists when it likes, so that what a person does
 * is tried in short attempts until it had its effect.
 */
import type { Locator, Page } from 'playwright-core';

/** How long a thing may take to appear, in milliseconds: starting on a busy machine included. */
export const PATIENCE = Number(process.env['CODEINTERP_PATIENCE_MS'] ?? 60_000);
/** How long one attempt waits for a part of the window, in milliseconds. */
export const ATTEMPT = 5_000;

/** Repeats `attempt` until it is true. What throws meanwhile counts as not yet; the last of it is told in the end. */
export async function eventually(what: string, attempt: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + PATIENCE;
  for (let last = ''; ; ) {
    try {
      if (await attempt()) {
        return;
      }
    } catch (error) {
      last = error instanceof Error ? error.message : String(error);
    }
    if (Date.now() > deadline) {
      throw new Error(last === '' ? `${what}: it did not come true in time` : `${what}: ${last}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/**
 * Lets the page do what is due within `span` milliseconds of its own clock: the timers that an event's handlers have set come
 * before the one that is waited for here, however slow the machine is.
 */
export async function settle(page: Page, span = 50): Promise<void> {
  await page.evaluate((ms) => new Promise((resolve) => setTimeout(resolve, ms)), span);
}

/** True once the element is seen; false after an attempt's time. */
export function seen(element: Locator, timeout = ATTEMPT): Promise<boolean> {
  return element
    .first()
    .waitFor({ timeout })
    .then(
      () => true,
      () => false,
    );
}

/** True once the element is seen no more; false after an attempt's time. */
export function gone(element: Locator, timeout = ATTEMPT): Promise<boolean> {
  return element
    .first()
    .waitFor({ state: 'hidden', timeout })
    .then(
      () => true,
      () => false,
    );
}

/** Clicks until the click had its effect. Only for what may be clicked twice: the first click may have been slow, not lost. */
export async function clickUntil(target: Locator, options: Parameters<Locator['click']>[0], effect: () => Promise<boolean>): Promise<void> {
  await eventually(`a click on ${target.toString()}`, async () => {
    await target.click({ timeout: ATTEMPT, ...options });
    return effect();
  });
}
