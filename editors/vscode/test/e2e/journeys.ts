/**
 * Whole journeys with the real program: built-in analysis, process sandbox.
 */
import { readFileSync } from 'node:fs';
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
    files: { 'sales.csv': readFileSync(path.join(root, 'sample', 'sales.csv')), 'months.csv': MONTHS, 'small.parquet': readFileSync(path.join(root, 'test', 'fixtures', 'small.parquet')), ...more.files },
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
      },
    },
  ];
}

/** Waits until no run is at work. */
async function idle(bench: Workbench): Promise<void> {
  await bench.statusItem().locator('.codicon-loading').waitFor({ state: 'detached' });
}
