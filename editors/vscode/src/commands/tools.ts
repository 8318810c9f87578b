/**
 * Commands around the product: model, key, doctor, sample, menu.
 */
import { execFile } from 'node:child_process';
import * as vscode from 'vscode';
import { keys, userSettings } from '../config';
import type { Ctx } from '../ctx';
import { pickEditorModel } from '../editor_models';
import { describeModel } from '../views/status';

/** How long the doctor may take, in milliseconds. */
const DOCTOR_TIMEOUT = 120_000;

/** Choose Model: sets `codeinterp.model` and starts the server anew with it. */
export async function selectModel(ctx: Ctx): Promise<void> {
  const items: (vscode.QuickPickItem & { model?: string })[] = [
    { label: `$(graph) ${vscode.l10n.t('Built-in analysis')}`, detail: vscode.l10n.t('No language model, no account, nothing leaves this machine.'), model: 'playbook' },
    { label: `$(sparkle) ${vscode.l10n.t("The editor's language model")}`, detail: vscode.l10n.t('GitHub Copilot or another one that this editor offers; no key needed.'), model: 'editor' },
    { label: `$(cloud) ${vscode.l10n.t('A provider…')}`, detail: vscode.l10n.t('OpenAI, Anthropic, Gemini, DeepSeek, Qwen and others: provider::model, with a key.') },
    { label: `$(server) ${vscode.l10n.t('A local or company server…')}`, detail: vscode.l10n.t('Any OpenAI-compatible server, by its address.') },
  ];
  const choice = await vscode.window.showQuickPick(items, { placeHolder: vscode.l10n.t('Who shall write the analysis?') });
  if (choice === undefined) {
    return;
  }
  const section = vscode.workspace.getConfiguration('codeinterp');
  let model = choice.model;
  let keyGiven = false;
  if (model === 'editor') {
    const models = await vscode.lm.selectChatModels();
    if (models.length > 1) {
      await pickEditorModel(models);
    }
  } else if (choice === items[3]) {
    const endpoint = await input(vscode.l10n.t('Address of the server'), 'http://127.0.0.1:8080/v1', section.get('endpoint', ''), isHttp);
    if (endpoint === undefined) {
      return;
    }
    model = await input(vscode.l10n.t('Name of the model there'), 'qwen3-coder', section.get('model', ''));
    if (model !== undefined) {
      await section.update('endpoint', endpoint, vscode.ConfigurationTarget.Global);
    }
  } else if (model === undefined) {
    model = await input(vscode.l10n.t('Provider and model'), 'openai::gpt-5-mini', section.get('model', ''));
    if (model !== undefined) {
      await section.update('endpoint', undefined, vscode.ConfigurationTarget.Global);
      keyGiven = await ctx.secrets.ask();
    }
  }
  if (model !== undefined && model !== '') {
    // The server starts anew with the changed setting by itself; a new key alone is nothing that it would notice.
    await section.update('model', model, vscode.ConfigurationTarget.Global);
    if (keyGiven) {
      await ctx.server.restart();
    }
    void vscode.window.showInformationMessage(vscode.l10n.t('Code Interpreter now uses: {0}', describeModel(model)));
  }
}

function input(title: string, placeHolder: string, value: string, check?: (value: string) => string | undefined): Thenable<string | undefined> {
  return vscode.window.showInputBox({ title, placeHolder, value, ignoreFocusOut: true, ...(check === undefined ? {} : { validateInput: check }) });
}

function isHttp(value: string): string | undefined {
  return /^https?:\/\/[^\s/]+/.test(value.trim()) ? undefined : vscode.l10n.t('An address begins with http:// or https://');
}

/** Store API Key, and start the server anew with it. */
export async function setApiKey(ctx: Ctx): Promise<void> {
  if (await ctx.secrets.ask()) {
    await ctx.server.restart();
    void vscode.window.setStatusBarMessage(vscode.l10n.t('The key is stored.'), 5_000);
  }
}

/** Forget API Key. */
export async function clearApiKey(ctx: Ctx): Promise<void> {
  await ctx.secrets.clear();
  await ctx.server.restart();
  void vscode.window.setStatusBarMessage(vscode.l10n.t('The key is forgotten.'), 5_000);
}

/** Doctor: what works on this machine, in an output channel. */
export async function doctor(ctx: Ctx, channel: vscode.OutputChannel): Promise<void> {
  await ctx.server.ready();
  const binary = ctx.server.binary;
  if (binary === undefined) {
    return;
  }
  channel.clear();
  channel.show(true);
  channel.appendLine(vscode.l10n.t('Looking at engines, Python, model and versions…'));
  const environment = { ...process.env, NO_COLOR: '1', ...(await ctx.secrets.environment()) };
  const settings = JSON.stringify(userSettings(keys(ctx.context.extension)));
  const text = await new Promise<string>((resolve) => {
    execFile(binary, ['doctor', '--settings', settings], { timeout: DOCTOR_TIMEOUT, maxBuffer: 1024 * 1024, env: environment }, (error, stdout, stderr) => {
      // The doctor tells its findings on stdout whatever its exit code is.
      resolve(stdout.trim() === '' ? stderr.trim() || (error?.message ?? '') : stdout);
    });
  });
  channel.clear();
  channel.appendLine(text.trimEnd());
}

/** Open Sample: a small table of the extension's own, copied to where it can be changed. */
export async function openSample(ctx: Ctx): Promise<void> {
  const folder = ctx.context.globalStorageUri;
  const copy = vscode.Uri.joinPath(folder, 'sales.csv');
  await vscode.workspace.fs.createDirectory(folder);
  await vscode.workspace.fs.copy(vscode.Uri.joinPath(ctx.context.extensionUri, 'sample', 'sales.csv'), copy, { overwrite: true });
  await vscode.window.showTextDocument(copy, { preview: false });
}

/** The status bar's menu. */
export async function menu(ctx: Ctx): Promise<void> {
  const separator = (label: string): vscode.QuickPickItem & { command?: string } => ({ label, kind: vscode.QuickPickItemKind.Separator });
  const entry = (icon: string, label: string, command: string, description = ''): vscode.QuickPickItem & { command?: string } => ({
    label: `$(${icon}) ${label}`,
    description,
    command,
  });
  await ctx.status.refresh();
  const status = ctx.status.known;
  const sandbox = status?.workspaces.map(({ backend, state }) => `${backend}, ${state}`).join('; ') ?? '';
  const items = [
    ...(ctx.runs.active().length > 0 ? [entry('debug-stop', vscode.l10n.t('Cancel'), 'codeinterp.cancel')] : []),
    ...(ctx.server.state === 'failed' ? [entry('refresh', vscode.l10n.t('Start the server again'), 'codeinterp.restartServer')] : []),
    entry('graph', vscode.l10n.t('Analyze File'), 'codeinterp.analyzeFile'),
    entry('comment-discussion', vscode.l10n.t('Ask About File…'), 'codeinterp.askFile'),
    entry('open-preview', vscode.l10n.t('Open Report…'), 'codeinterp.openReport'),
    entry('symbol-variable', vscode.l10n.t('Show Variables'), 'codeinterp.variables'),
    separator(vscode.l10n.t('Model and sandbox')),
    entry('sparkle', vscode.l10n.t('Choose Model…'), 'codeinterp.selectModel', status === undefined ? '' : describeModel(status.model)),
    entry('debug-restart', vscode.l10n.t('Restart Kernel'), 'codeinterp.restartKernel', sandbox),
    entry('stop-circle', vscode.l10n.t('Stop Sandbox'), 'codeinterp.stopSandbox'),
    separator(vscode.l10n.t('Help')),
    entry('gear', vscode.l10n.t('Settings'), 'codeinterp.openSettings'),
    entry('pulse', vscode.l10n.t('Doctor'), 'codeinterp.doctor'),
    entry('output', vscode.l10n.t('Show Log'), 'codeinterp.showLog'),
  ];
  const choice = await vscode.window.showQuickPick(items, { placeHolder: 'Code Interpreter' });
  if (choice?.command !== undefined) {
    await vscode.commands.executeCommand(choice.command);
  }
}
