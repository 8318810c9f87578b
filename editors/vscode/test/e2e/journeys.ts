/**
 * Whole journeys with the real program: built-in analysis, process sandbox.
 */
import type { Group } from './group';
import type { Parts } from './parts';
import { clickUntil, seen } from './patience';
import { serverPids } from './processes';
import { real } from './real';
import { Workbench } from './workbench';

/** Journeys on one editor, in the order of a first day with it. */
export function journeys(parts: Parts): Group[] {
  return [
    {
      name: 'journeys',
      start: () => Workbench.start(parts, real(parts)),
      scenarios: {
        'palette, analyze, and the report shows its charts': async (bench) => {
          await bench.open('sales.csv');
          await bench.clickLine('Toaster');
          await bench.command('Code Interpreter: Analyze File');
          await bench.hasPixels('img[src*="artifacts"]', 500);
          await bench.focusedTab('sales.csv').waitFor();
          await bench.idle();
          await bench.screenshot('journey-report');
        },
        'a parquet file from the explorer': async (bench) => {
          await bench.explorerMenu('small.parquet', 'Analyze File');
          await bench.tab('small.parquet.md').waitFor();
          await bench.shows('li', 'small.parquet has 6 rows');
          await bench.hasPixels('img[src*="artifacts"]', 500);
          await bench.idle();
          await bench.screenshot('journey-parquet');
        },
        'a question about lines is answered on those lines, and the hint opens the chart': async (bench) => {
          await bench.open('months.csv');
          await bench.clickLine('2025-02-01,North');
          await bench.page.keyboard.press('Home');
          for (let line = 0; line < 6; line += 1) {
            await bench.page.keyboard.press('Shift+ArrowDown');
          }
          await bench.ask('Code Interpreter: Ask About Selection…', 'mean revenue by region');
          await bench.tab('months.csv.md').waitFor();
          await bench.idle();
          await bench.hint('chart 1').waitFor();
          await bench.hasPixels('img[src*="artifacts"]', 500);
          await bench.screenshot('journey-selection');
          await bench.followHint('chart 1', 'chart-1.png');
          await bench.hasPixels('img[src*="chart"]', 500);
          await bench.screenshot('journey-chart');
        },
        'a hover on a line that was asked about shows its chart': async (bench) => {
          await bench.open('months.csv');
          const line = bench.page.locator('.view-line span', { hasText: '2025-04-01,South' }).last();
          await bench.hoverUntil(line, 'revenue', { x: 40, y: 5 });
          const picture = bench.page.locator('.monaco-hover img').first();
          await bench.page.waitForFunction((image) => image instanceof HTMLImageElement && image.naturalWidth > 100, await picture.elementHandle());
          await bench.screenshot('journey-hover-chart');
        },
        'a broken row is marked while it is typed, and says what is wrong': async (bench) => {
          await bench.open('months.csv');
          await bench.clickLine('2025-01-01,North');
          await bench.page.keyboard.press('Home');
          await bench.page.keyboard.type('2024-12-01,East\n');
          await bench.page.locator('.squiggly-info').first().waitFor();
          await bench.hoverUntil(bench.page.locator('.view-line span', { hasText: '2024-12-01,East' }).last(), /2 cells, fewer/, { x: 40, y: 5 });
          await bench.screenshot('journey-broken');
          await bench.command('File: Revert File');
          await bench.page.locator('.squiggly-info').waitFor({ state: 'detached' });
        },
        'typing in a table updates its hint and its hover': async (bench) => {
          await bench.open('months.csv');
          const hint = bench.page.locator('.view-line', { hasText: 'month,region,revenue' }).first();
          await hint.locator('span', { hasText: /3.cols/ }).first().waitFor();
          await bench.clickLine('2025-01-01,North');
          await bench.page.keyboard.press('Home');
          await bench.page.keyboard.type('2024-12-01,East,\n');
          await hint.locator('span', { hasText: /gap/ }).first().waitFor();
          const column = bench.page.locator('.view-line span', { hasText: 'month,region,revenue' }).last();
          await bench.hoverUntil(column, /missing/i, { x: 110, y: 5 });
          await bench.screenshot('journey-hover');
          await bench.command('File: Revert File');
        },
        'a run is cancelled at once': async (bench) => {
          await bench.open('wait.py');
          await bench.clickLine('sleep');
          await bench.page.keyboard.press('Control+a');
          await bench.command('Code Interpreter: Run Selection in Sandbox');
          await bench.busy();
          await bench.shows('code, pre', 'sleep');
          await bench.screenshot('journey-running');
          await bench.command('Code Interpreter: Cancel Run');
          // The code would sleep for ten minutes.
          console.log(`        cancelled after ${await bench.idle()} ms`);
          await bench.shows('body', /status: cancelled/i);
          await bench.page.locator('.view-line span', { hasText: /running.step/ }).waitFor({ state: 'detached' });
          await bench.screenshot('journey-cancelled');
        },
        'a killed server starts again, and the history is there': async (bench) => {
          await bench.showRuns();
          const row = bench.row('months.csv').or(bench.row('sales.csv')).first();
          await row.waitFor();
          const before = serverPids(bench.editor, parts.binary);
          before.forEach((pid) => process.kill(pid, 'SIGKILL'));
          await bench.until('a new server', () => serverPids(bench.editor, parts.binary).some((pid) => !before.includes(pid)));
          await bench.command('Code Interpreter: Refresh');
          await clickUntil(row, {}, () => seen(bench.activeTab('months.csv.md').or(bench.activeTab('sales.csv.md'))));
          await bench.shows('img[src*="artifacts"]');
          await bench.screenshot('journey-history');
        },
        'the sample table needs a click for its report': async (bench) => {
          await bench.command('View: Close All Editors');
          await bench.command('Code Interpreter: Open a Sample Table');
          await bench.focusedTab('sales.csv').waitFor();
          await clickUntil(bench.page.locator('.editor-actions .action-label[aria-label*="Analyze File"]').first(), {}, () => seen(bench.tab('sales.csv.md')));
          await bench.hasPixels('img[src*="artifacts"]', 500);
          await bench.idle();
          await bench.screenshot('journey-sample');
        },
        'reports and charts follow a light theme': async (bench) => {
          await bench.command('Preferences: Toggle between Light/Dark Themes');
          await bench.page.waitForSelector('.monaco-workbench.vs');
          await bench.showRuns();
          await clickUntil(bench.row('sales.csv'), {}, () => seen(bench.activeTab('sales.csv.md')));
          await bench.shows('h1, h2');
          await bench.hasPixels('body', 50_000, 'light');
          await bench.hasPixels('img[src*="artifacts"]', 500);
          await bench.screenshot('journey-light');
          await bench.command('Preferences: Toggle between Light/Dark Themes');
        },
      },
    },
  ];
}
