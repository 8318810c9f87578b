/**
 * The tree of runs: state, question and file of each, and beneath it the report, the charts and the files it made.
 */
import * as vscode from 'vscode';
import { type Artifact, SCHEME } from '../lsp_ext';
import { type Run, type Runs, statusIcon } from '../runs';
import { artifactPath, baseName } from '../uris';
import { imageMarkdown } from '../hover_images';
import { describeStatus } from './words';

/** A node. It has the shape of the commands' arguments, so that menus and clicks can hand it on as it is. */
export type RunNode = { kind: 'run'; run: string } | { kind: 'artifact'; run: string; name: string };

const COLORS: Partial<Record<Run['status'], string>> = {
  completed: 'testing.iconPassed',
  incomplete: 'list.warningForeground',
  failed: 'testing.iconFailed',
};

/** Shows `Runs` as a tree. */
export class RunsTree implements vscode.TreeDataProvider<RunNode>, vscode.Disposable {
  private readonly changes = new vscode.EventEmitter<undefined>();
  readonly onDidChangeTreeData = this.changes.event;
  private readonly unsubscribe: () => void;

  constructor(
    private readonly runs: Runs,
    private readonly readArtifact: (uri: vscode.Uri) => Promise<Uint8Array>,
  ) {
    this.unsubscribe = runs.onChange(() => this.changes.fire(undefined));
  }

  dispose(): void {
    this.unsubscribe();
    this.changes.dispose();
  }

  getChildren(node?: RunNode): RunNode[] {
    if (node === undefined) {
      return this.runs.newestFirst().map(({ run }) => ({ kind: 'run', run }));
    }
    const run = node.kind === 'run' ? this.runs.get(node.run) : undefined;
    const chartsFirst = [...(run?.artifacts ?? [])].sort((a, b) => Number(isPicture(b)) - Number(isPicture(a)));
    return chartsFirst.map(({ name }) => ({ kind: 'artifact', run: node.run, name }));
  }

  getTreeItem(node: RunNode): vscode.TreeItem {
    const run = this.runs.get(node.run);
    if (run === undefined) {
      return new vscode.TreeItem(node.run);
    }
    if (node.kind === 'run') {
      return runItem(run);
    }
    const artifact = run.artifacts.find(({ name }) => name === node.name);
    return artifact === undefined ? new vscode.TreeItem(node.name) : artifactItem(run, artifact);
  }

  /** Shows the chart itself when the pointer rests on it. */
  async resolveTreeItem(item: vscode.TreeItem, node: RunNode): Promise<vscode.TreeItem> {
    if (node.kind === 'artifact') {
      const uri = vscode.Uri.from({ scheme: SCHEME, path: artifactPath(node.run, node.name) });
      const picture = await this.readArtifact(uri).then(
        (bytes) => imageMarkdown(node.name, bytes),
        () => undefined,
      );
      item.tooltip = picture === undefined ? node.name : new vscode.MarkdownString(picture);
    }
    return item;
  }
}

function isPicture(artifact: Artifact): boolean {
  return artifact.mime.startsWith('image/') || artifact.mime.includes('plotly');
}

function runItem(run: Run): vscode.TreeItem {
  const active = run.status === 'queued' || run.status === 'running';
  const file = baseName(run.uri);
  // The file first: a long question is cut at its end, and hides nothing.
  const item = new vscode.TreeItem(file === '' ? run.question : file);
  item.id = run.run;
  item.collapsibleState =
    run.artifacts.length === 0 ? vscode.TreeItemCollapsibleState.None : vscode.TreeItemCollapsibleState.Collapsed;
  const color = COLORS[run.status];
  item.iconPath = new vscode.ThemeIcon(statusIcon(run.status), color === undefined ? undefined : new vscode.ThemeColor(color));
  const state = describeStatus(run);
  // What the label says already is not said again; what an icon tells stands last.
  const facts = [...(run.question === '' || file === '' ? [] : [run.question]), ...(run.status === 'completed' ? [] : [state])];
  item.description = facts.join(' · ');
  const tooltip = `${run.question === '' ? file : run.question}\n${file} · ${state}`;
  item.tooltip = tooltip;
  item.contextValue = active ? 'run.active' : 'run.done';
  item.command = { command: 'codeinterp.openReport', title: '', arguments: [{ run: run.run }] };
  item.accessibilityInformation = { label: tooltip };
  return item;
}

function artifactItem(run: Run, artifact: Artifact): vscode.TreeItem {
  const uri = vscode.Uri.from({ scheme: SCHEME, path: artifactPath(run.run, artifact.name) });
  const item = new vscode.TreeItem(baseName(artifact.name));
  item.id = `${run.run}/${artifact.name}`;
  item.resourceUri = uri;
  item.iconPath = isPicture(artifact) ? new vscode.ThemeIcon('graph') : vscode.ThemeIcon.File;
  if (artifact.step !== undefined && artifact.step !== null) {
    item.description = vscode.l10n.t('step {0}', artifact.step);
  }
  item.contextValue = 'artifact';
  item.command = { command: 'codeinterp.openArtifact', title: '', arguments: [{ run: run.run, name: artifact.name }] };
  return item;
}
