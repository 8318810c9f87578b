/**
 * Commands on what a run made: its report, its artifacts, its exports.
 */
import * as path from 'node:path';
import * as vscode from 'vscode';
import type { Ctx } from '../ctx';
import { type ExportFormat, isFinal } from '../lsp_ext';
import { baseName } from '../uris';
import { chooseArtifact, chooseRun } from './choose';

/** Open Report. */
export async function openReport(ctx: Ctx, argument: unknown): Promise<void> {
  const run = await chooseRun(ctx, argument, vscode.l10n.t('Open which report?'));
  if (run !== undefined) {
    await ctx.reports.show(run.run, run.uri);
  }
}

/** Open Chart or File: from a hint, a hover, the tree, or by choice. */
export async function openArtifact(ctx: Ctx, argument: unknown): Promise<void> {
  const chosen = await chooseArtifact(ctx, argument);
  if (chosen !== undefined) {
    await ctx.outputs.open(chosen.run.run, chosen.artifact);
  }
}

/** Save Artifact. */
export async function saveArtifact(ctx: Ctx, argument: unknown): Promise<void> {
  const chosen = await chooseArtifact(ctx, argument);
  if (chosen === undefined) {
    return;
  }
  const { run, artifact } = chosen;
  const to = await vscode.window.showSaveDialog({ defaultUri: beside(run.uri, baseName(artifact.name)), title: vscode.l10n.t('Save {0}', artifact.name) });
  if (to === undefined) {
    return;
  }
  // The dialog has asked about a file that exists already.
  const saved = await ctx.server.execute('codeinterp.saveArtifact', { run: run.run, name: artifact.name, to: to.fsPath, overwrite: true });
  void vscode.window.setStatusBarMessage(vscode.l10n.t('Saved {0}', saved.path), 5_000);
}

/** Export: as a notebook that opens at once, a script, or Markdown. */
export async function exportRun(ctx: Ctx, argument: unknown): Promise<void> {
  const run = await chooseRun(ctx, argument, vscode.l10n.t('Export which run?'), ({ status }) => isFinal(status));
  if (run === undefined) {
    return;
  }
  const formats: (vscode.QuickPickItem & { to: ExportFormat; extension: string })[] = [
    { label: `$(notebook) ${vscode.l10n.t('Jupyter notebook')}`, description: '.ipynb', to: 'notebook', extension: 'ipynb' },
    { label: `$(file-code) ${vscode.l10n.t('Python script')}`, description: '.py', to: 'script', extension: 'py' },
    { label: `$(markdown) ${vscode.l10n.t('Markdown report')}`, description: '.md', to: 'markdown', extension: 'md' },
  ];
  const format = await vscode.window.showQuickPick(formats, { placeHolder: vscode.l10n.t('Export as') });
  if (format === undefined) {
    return;
  }
  const stem = baseName(run.uri).replace(/\.[^.]*$/, '') || 'analysis';
  const to = await vscode.window.showSaveDialog({
    defaultUri: beside(run.uri, `${stem}.${format.extension}`),
    filters: { [format.label.replace(/^\$\([^)]*\) /, '')]: [format.extension] },
  });
  if (to === undefined) {
    return;
  }
  const saved = await ctx.server.execute('codeinterp.export', { run: run.run, to: format.to, path: to.fsPath, overwrite: true });
  await vscode.commands.executeCommand('vscode.open', vscode.Uri.file(saved.path));
}

function beside(source: string, name: string): vscode.Uri {
  const uri = source === '' ? undefined : vscode.Uri.parse(source);
  const folder = uri?.scheme === 'file' ? vscode.Uri.file(path.dirname(uri.fsPath)) : vscode.workspace.workspaceFolders?.[0]?.uri;
  return folder === undefined ? vscode.Uri.file(name) : vscode.Uri.joinPath(folder, name);
}
