/**
 * Whole journeys with the real program: built-in analysis, process sandbox.
 */
import { readdirSync, readFileSync } from 'node:fs';
import * as path from 'node:path';
import type { Group } from './group';
import { type Parts, root } from './parts';
import { type Setup, Workbench } from './workbench';

/** Twelve months in two regions; March is low. */
const MONTHS = ['month,region,revenue', ...Array.from({ length: 12 }, (_, i) => [`2025-${String(i + 1).padStart(2, '0')}-01,North,${i === 2 ? 40 : 100 + 5 * i}`, `2025-${String(i + 1).padStart(2, '0')}-01,South,${80 + 3 * i}`]).flat(), ''].join('\n');

function setup(parts: Parts, more: Partial<Setup> = {}): Setup {
  return {
    ...more,
    settings: { 'codeinterp.server.path': parts.binary, 'codeinterp.model': 'playbook', 'codeinterp.sandbox.backend': 'process', ...more.settings },
    files: { 'sales.csv': readFileSync(path.join(root, 'sample', 'sales.csv')), 'months.csv': MONTHS, 'wait.py': 'import time\nprint("waiting")\ntime.sleep(600)\n', 'small.parquet': readFileSync(path.join(root, 'test', 'fixtures', 'small.parquet')), ...more.files },
  };
}

/** Journeys on one editor, in the order of a first day with it. */
export function journeys(parts: Parts): Group[] {
  return [
    {
      name: 'journeys',
      start: () => Workbench.start(parts, setup(parts)),
      scenarios: {
        'palette, analyze, and the report shows its charts': async (bench) => {
          await bench.open('sales.csv');
          await bench.page.locator('.view-line', { hasText: 'Toaster' }).first().click();
          await bench.command('Code Interpreter: Analyze File');
          const report = await bench.frameWith('img[src*="artifacts"]');
          await bench.pixels(report.locator('img').first(), 500);
          await bench.page.locator('.editor-group-container.active .tab.active', { hasText: /^sales.csv$/ }).waitFor();
          await idle(bench);
          await bench.screenshot('journey-report');
        },
        'a parquet file from the explorer': async (bench) => {
          await bench.explorerMenu('small.parquet', 'Analyze File');
          await bench.tab('small.parquet.md').waitFor();
          const report = await bench.frameWith('img[src*="artifacts"]');
          await bench.pixels(report.locator('img').first(), 500);
          await idle(bench);
          await bench.screenshot('journey-parquet');
        },
        'a question about lines is answered on those lines, and the hint opens the chart': async (bench) => {
          await bench.open('months.csv');
          await bench.page.locator('.view-line', { hasText: '2025-02-01,North' }).click();
          await bench.page.keyboard.press('Home');
          for (let line = 0; line < 6; line += 1) {
            await bench.page.keyboard.press('Shift+ArrowDown');
          }
          await bench.command('Code Interpreter: Ask About Selection…');
          await bench.answer('mean revenue by region');
          await bench.tab('months.csv.md').waitFor();
          await idle(bench);
          const hint = bench.hint('chart 1');
          await hint.waitFor();
          await bench.screenshot('journey-selection');
          await hint.click({ modifiers: ['Control'] });
          const viewer = await bench.frameWith('img[src*="chart"]');
          await bench.pixels(viewer.locator('img[src*="chart"]').first(), 500);
          await bench.screenshot('journey-chart');
        },
        'typing in a table updates its hint and its hover': async (bench) => {
          await bench.tab('months.csv').first().click();
          const hint = bench.page.locator('.view-line', { hasText: 'month,region,revenue' }).first();
          await hint.locator('span', { hasText: /3.cols/ }).first().waitFor();
          await bench.page.locator('.view-line', { hasText: '2025-01-01,North' }).first().click();
          await bench.page.keyboard.press('Home');
          await bench.page.keyboard.type('2024-12-01,East,\n');
          await hint.locator('span', { hasText: /gap/ }).first().waitFor();
          await bench.page.locator('.view-line span', { hasText: 'month,region,revenue' }).last().hover({ position: { x: 110, y: 5 } });
          await bench.page.locator('.monaco-hover', { hasText: /missing/i }).first().waitFor();
          await bench.screenshot('journey-hover');
          await bench.page.keyboard.press('Control+z');
        },
        'a run is cancelled within two seconds': async (bench) => {
          await bench.open('wait.py');
          await bench.page.locator('.view-line', { hasText: 'sleep' }).first().click();
          await bench.page.keyboard.press('Control+a');
          await bench.command('Code Interpreter: Run Selection in Sandbox');
          await bench.statusItem().locator('.codicon-loading').waitFor();
          await (await bench.frameWith('code, pre')).locator('body', { hasText: 'sleep' }).waitFor();
          await bench.screenshot('journey-running');
          await bench.command('Code Interpreter: Cancel Run');
          await bench.statusItem().locator('.codicon-loading').waitFor({ state: 'detached', timeout: 2_000 });
          await bench.screenshot('journey-cancelled');
        },
        'a killed server starts again, and the history is there': async (bench) => {
          await bench.page.locator('.activitybar .action-item [aria-label^="Code Interpreter"]').first().click();
          const rows = bench.page.locator('.pane-body .monaco-list-row', { hasText: 'mean revenue by region' });
          await rows.first().waitFor();
          const before = serverPids(bench.folder, parts.binary);
          before.forEach((pid) => process.kill(pid, 'SIGKILL'));
          await bench.until(() => serverPids(bench.folder, parts.binary).some((pid) => !before.includes(pid)));
          await bench.command('Code Interpreter: Refresh');
          await rows.first().waitFor();
          await rows.first().click();
          await (await bench.frameWith('img[src*="artifacts"]')).locator('img').first().waitFor();
          await bench.screenshot('journey-history');
        },
        'the sample table needs a click for its report': async (bench) => {
          await bench.command('View: Close All Editors');
          await bench.command('Code Interpreter: Open a Sample Table');
          await bench.tab('sales.csv').waitFor();
          await bench.page.locator('.editor-actions .action-label[aria-label*="Analyze File"]').first().click();
          const report = await bench.frameWith('img[src*="artifacts"]');
          await bench.pixels(report.locator('img').first(), 500);
          await idle(bench);
          await bench.screenshot('journey-sample');
        },
        'reports and charts follow a light theme': async (bench) => {
          await bench.command('Preferences: Toggle between Light/Dark Themes');
          await bench.page.waitForSelector('.monaco-workbench.vs');
          const report = await bench.frameWith('h1, h2');
          await bench.pixels(report.locator('body'), 50_000, 'light');
          await bench.screenshot('journey-light');
        },
      },
    },
  ];
}

/** Waits until no run is at work. */
async function idle(bench: Workbench): Promise<void> {
  await bench.statusItem().locator('.codicon-loading').waitFor({ state: 'detached' });
}

/** Process ids of the servers that the editor of this test started. */
function serverPids(folder: string, binary: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        const [program, argument] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
        const home = /XDG_STATE_HOME=([^\0]*)/.exec(readFileSync(`/proc/${pid}/environ`, 'utf8'))?.[1] ?? '';
        return program === binary && argument === 'lsp' && home === path.join(path.dirname(folder), 'state');
      } catch {
        return false;
      }
    });
}
