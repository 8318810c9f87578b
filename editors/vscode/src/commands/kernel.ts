/**
 * Commands on the run at work and on the sandbox.
 */
import * as vscode from 'vscode';
import type { Ctx } from '../ctx';
import { isFinal } from '../lsp_ext';
import { chooseRun } from './choose';
import { activeDocument } from './files';

/** Cancel: the run that is named, the only one at work, or the chosen one. */
export async function cancel(ctx: Ctx, argument: unknown): Promise<void> {
  const active = ctx.runs.active();
  if (active.length === 0) {
    // Nothing known to be at work: a run may still have started elsewhere, so that all are cancelled.
    await ctx.server.execute('codeinterp.cancel', {});
    return;
  }
  const run = await chooseRun(ctx, argument, vscode.l10n.t('Cancel which run?'), ({ status }) => !isFinal(status));
  if (run !== undefined) {
    await ctx.server.execute('codeinterp.cancel', { run: run.run });
  }
}

/** The document whose workspace folder a command is about. */
export function currentUri(ctx: Ctx): string | undefined {
  return activeDocument(ctx.runs)?.toString() ?? ctx.runs.latest()?.uri;
}

function scope(ctx: Ctx): { uri?: string } {
  const uri = currentUri(ctx);
  return uri === undefined ? {} : { uri };
}

/** Show Variables. */
export async function showVariables(ctx: Ctx): Promise<void> {
  await ctx.server.ready();
  await vscode.commands.executeCommand('codeinterp.variables.focus');
  ctx.refreshVariables();
}

/** Restart Kernel: variables are lost, so that it asks. */
export async function restartKernel(ctx: Ctx): Promise<void> {
  const restart = vscode.l10n.t('Restart');
  const text = vscode.l10n.t('Restart the kernel? Its variables are lost; reports and charts stay.');
  if ((await vscode.window.showWarningMessage(text, { modal: true }, restart)) === restart) {
    await ctx.server.execute('codeinterp.restartKernel', scope(ctx));
    ctx.refreshVariables();
    await ctx.status.refresh();
  }
}

/** Stop Sandbox. */
export async function stopSandbox(ctx: Ctx): Promise<void> {
  await ctx.server.execute('codeinterp.stopSandbox', scope(ctx));
  ctx.refreshVariables();
  await ctx.status.refresh();
}

/** Clear Hints of the document in front, or of all. */
export async function clearHints(ctx: Ctx): Promise<void> {
  const uri = activeDocument(ctx.runs)?.toString();
  await ctx.server.execute('codeinterp.clearHints', uri === undefined ? {} : { uri });
}
