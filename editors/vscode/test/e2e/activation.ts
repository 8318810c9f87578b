/**
 * Measures what our activation adds to a window, by VS Code's own figures (`Developer: Show Running Extensions`): the time to
 * load the code and to call `activate`, in windows that are opened one after the other. Run it on an idle machine:
 *
 *     npm run activation -- 5
 */
import { findParts } from './parts';
import { ATTEMPT, eventually, seen } from './patience';
import { real } from './real';
import { Workbench } from './workbench';

async function main(): Promise<void> {
  const parts = findParts();
  const windows = Number(process.argv[2] ?? 5);
  const bench = await Workbench.start(parts, real(parts));
  const figures: number[] = [];
  try {
    while (figures.length < windows) {
      const window = await bench.another();
      figures.push(await activationOf(window));
      await window.close();
    }
  } finally {
    await bench.stop();
  }
  const sorted = [...figures].sort((a, b) => a - b);
  console.log(`activation in ms: ${figures.join(', ')}; median ${sorted[Math.floor(sorted.length / 2)] ?? NaN}`);
}

async function activationOf(bench: Workbench): Promise<number> {
  await bench.statusItem().waitFor();
  await bench.command('Developer: Show Running Extensions');
  const ours = bench.page.locator('.runtime-extensions-editor .monaco-list-row', { hasText: 'Code Interpreter' }).first();
  let figure = NaN;
  await eventually('our row among the running extensions', async () => {
    if (!(await seen(ours, 500))) {
      // The slowest stand first, and only those in sight are drawn.
      await bench.page.locator('.runtime-extensions-editor').hover({ timeout: ATTEMPT });
      await bench.page.mouse.wheel(0, 350);
      return false;
    }
    const text = await ours.locator('.activation-time').innerText();
    figure = Number(/(\d+)\s*ms/.exec(text)?.[1] ?? NaN);
    return !Number.isNaN(figure);
  });
  return figure;
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    console.error(error);
    process.exit(1);
  },
);
