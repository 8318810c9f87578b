/**
 * Setups with the real program: built-in analysis, process sandbox.
 */
import { readFileSync } from 'node:fs';
import * as path from 'node:path';
import type { Setup } from './editor';
import { type Parts, root } from './parts';

/** Twelve months in two regions; March is low. */
const MONTHS = ['month,region,revenue', ...Array.from({ length: 12 }, (_, i) => [`2025-${String(i + 1).padStart(2, '0')}-01,North,${i === 2 ? 40 : 100 + 5 * i}`, `2025-${String(i + 1).padStart(2, '0')}-01,South,${80 + 3 * i}`]).flat(), ''].join('\n');

/** Code that a person would not wait for. */
const WAIT = 'import time\nprint("waiting")\ntime.sleep(600)\n';

/** A setup on tables and on code that runs for minutes. */
export function real(parts: Parts, more: Partial<Setup> = {}): Setup {
  return {
    ...more,
    settings: { 'codeinterp.server.path': parts.binary, 'codeinterp.model': 'playbook', 'codeinterp.sandbox.backend': 'process', ...more.settings },
    files: {
      'sales.csv': readFileSync(path.join(root, 'sample', 'sales.csv')),
      'months.csv': MONTHS,
      'wait.py': WAIT,
      'small.parquet': readFileSync(path.join(root, 'test', 'fixtures', 'small.parquet')),
      ...more.files,
    },
  };
}
