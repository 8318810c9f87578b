/**
 * Words for states and sizes, in the person's language.
 */
import * as vscode from 'vscode';
import type { Variable } from '../lsp_ext';
import type { Run } from '../runs';

/** A run's state in words. */
export function describeStatus(run: Run): string {
  switch (run.status) {
    case 'queued':
      return vscode.l10n.t('queued');
    case 'running':
      return run.step > 0 ? vscode.l10n.t('step {0}', run.step) : vscode.l10n.t('starting');
    case 'completed':
      return vscode.l10n.t('completed');
    case 'incomplete':
      return vscode.l10n.t('incomplete');
    case 'failed':
      return vscode.l10n.t('failed');
    case 'cancelled':
      return vscode.l10n.t('cancelled');
  }
}

/** `1.5 MB` for 1,572,864 bytes: binary steps, one decimal below ten. */
export function formatBytes(bytes: number): string {
  const units = ['B', 'KB', 'MB', 'GB', 'TB'];
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit > 0 && value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit] ?? 'B'}`;
}

/** `DataFrame 120 × 5 · 4.8 KB`. */
export function describeVariable(variable: Variable): string {
  const shape = Array.isArray(variable.shape) ? variable.shape.join(' × ') : variable.shape;
  const head = shape === undefined || shape === null || shape === '' ? variable.type : `${variable.type} ${shape}`;
  return variable.bytes === undefined || variable.bytes === null ? head : `${head} · ${formatBytes(variable.bytes)}`;
}
