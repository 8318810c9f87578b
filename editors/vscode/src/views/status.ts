/**
 * The status bar item: what is going on in one glance, the menu on click.
 */
import * as vscode from 'vscode';
import type { Status } from '../lsp_ext';
import type { Runs } from '../runs';
import type { Server } from '../server';
import { baseName } from '../uris';
import { describeStatus, formatBytes } from './words';

/** Shows the server's and the runs' state. */
export class StatusBar implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem('codeinterp.status', vscode.StatusBarAlignment.Left, 0);
  private readonly subscriptions: { dispose(): unknown }[];
  private status: Status | undefined;
  /** What a long work outside of runs (an image build, a download) says. */
  private work: string | undefined;

  constructor(
    private readonly server: Server,
    private readonly runs: Runs,
  ) {
    this.item.name = 'Code Interpreter';
    this.item.command = 'codeinterp.menu';
    const unsubscribe = runs.onChange(() => this.render());
    this.subscriptions = [this.item, server.onState(() => this.render()), { dispose: unsubscribe }];
    this.render();
    this.item.show();
  }

  dispose(): void {
    for (const subscription of this.subscriptions) {
      subscription.dispose();
    }
  }

  /** The newest answer of `codeinterp.status`. */
  get known(): Status | undefined {
    return this.status;
  }

  /** Asks the server for its state; silently keeps the old one when it does not answer. */
  async refresh(): Promise<void> {
    if (this.server.running() !== undefined) {
      this.status = await this.server.execute('codeinterp.status', {}).catch(() => this.status);
      this.render();
    }
  }

  /** Shows the words of a progress, or takes them away. */
  setWork(work: string | undefined): void {
    this.work = work;
    this.render();
  }

  private render(): void {
    const [active] = this.runs.active();
    void vscode.commands.executeCommand('setContext', 'codeinterp.running', active !== undefined);
    this.item.backgroundColor = undefined;
    if (active !== undefined) {
      this.item.text = `$(loading~spin) ${baseName(active.uri)}: ${this.work ?? describeStatus(active)}`;
    } else if (this.work !== undefined) {
      this.item.text = `$(loading~spin) ${this.work}`;
    } else if (this.server.state === 'failed') {
      this.item.text = '$(error) Code Interpreter';
      this.item.backgroundColor = new vscode.ThemeColor('statusBarItem.errorBackground');
    } else if (this.server.state === 'starting') {
      this.item.text = '$(loading~spin) Code Interpreter';
    } else {
      this.item.text = `$(graph) ${['Code Interpreter', ...this.facts()].join(' · ')}`;
    }
    this.item.tooltip = this.tooltip();
    this.item.accessibilityInformation = { label: this.item.text.replace(/\$\([^)]*\)\s*/g, '') };
  }

  /** Model and sandbox in a word each, as far as the server has told. */
  private facts(): string[] {
    const backends = new Set(this.status?.workspaces.map(({ backend }) => backend).filter((backend) => backend !== ''));
    return this.status === undefined ? [] : [this.status.model.split('::').pop() ?? '', ...backends];
  }

  private tooltip(): vscode.MarkdownString {
    const text = new vscode.MarkdownString('**Code Interpreter**\n\n', true);
    if (this.server.state === 'failed') {
      return text.appendText(vscode.l10n.t('The server is not running. Click for what to do.'));
    }
    if (this.status === undefined) {
      return text.appendText(vscode.l10n.t('Click for the menu.'));
    }
    text.appendMarkdown(`$(sparkle) `).appendText(describeModel(this.status.model)).appendMarkdown('\n\n');
    for (const workspace of this.status.workspaces) {
      const memory =
        workspace.memory_bytes === undefined || workspace.memory_bytes === null ? '' : `, ${formatBytes(workspace.memory_bytes)}`;
      text
        .appendMarkdown(`$(package) `)
        .appendText(`${baseName(workspace.uri)}: ${workspace.backend}, ${workspace.state}${memory}`)
        .appendMarkdown('\n\n');
    }
    return text;
  }
}

/** The model's name as a person reads it. */
export function describeModel(model: string): string {
  if (model === 'playbook') {
    return vscode.l10n.t('Built-in analysis (no language model)');
  }
  return model === 'editor' ? vscode.l10n.t("The editor's language model") : model;
}
