/**
 * The editor in Chinese.
 */
import type { Group } from './group';
import type { Parts } from './parts';
import { ATTEMPT, clickUntil, seen } from './patience';
import { scripted } from './scripted';
import { Workbench } from './workbench';

/** Scenarios on an editor whose language is Chinese. */
export function languages(parts: Parts): Group {
  return {
    name: 'languages',
    start: () => Workbench.start(parts, scripted(parts, { language: 'zh-cn' })),
    scenarios: {
      'commands, questions and menus are Chinese': async (bench) => {
        await bench.open('sales.csv');
        await bench.command('就文件提问');
        await bench.page.locator('.quick-input-widget', { hasText: '就 sales.csv 提问' }).waitFor();
        await bench.screenshot('languages-question');
        await bench.quickInput().press('Escape', { timeout: ATTEMPT });
        const entry = bench.page.locator('.quick-input-list .monaco-list-row', { hasText: '选择模型' });
        await clickUntil(bench.statusItem(), {}, () => seen(entry));
        await bench.screenshot('languages-menu');
      },
    },
  };
}
