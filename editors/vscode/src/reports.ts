/**
 * Report tabs: beside the file, without the focus, one a file.
 */
import * as vscode from 'vscode';
import { SCHEME } from './lsp_ext';
import type { Runs } from './runs';
import { baseName, parsePath, reportPath } from './uris';

/** The view type of VS Code's built-in Markdown preview. */
const PREVIEW = 'vscode.markdown.preview.editor';

/**
 * When a preview that has come into sight is rendered once more, in milliseconds. VS Code hands a change to a page 200 ms
 * after its text at the latest, whether its script listens by then or not: what a slow page missed is never told again.
 */
const LATE_READER = [1_500, 6_000, 20_000];

/** Opens reports and finds the one that is looked at. */
export class Reports implements vscode.Disposable {
  private readonly subscription: vscode.Disposable;
  private readonly timers = new Set<NodeJS.Timeout>();

  /** `touch` makes a run's preview render itself anew. */
  constructor(
    private readonly runs: Runs,
    touch: (run: string) => void,
  ) {
    // VS Code shows a preview that was hidden as it first was, without what it was told while it was looked at: one that
    // goes out of sight is rendered anew.
    let inSight = new Set<string>();
    this.subscription = vscode.window.tabGroups.onDidChangeTabs(() => {
      const tabs = reportTabs();
      const now = new Set(tabs.filter(({ tab }) => tab.isActive).map(({ run }) => run));
      const came = [...now].filter((run) => !inSight.has(run));
      came.forEach((run) => LATE_READER.forEach((delay) => this.later(delay, () => touch(run))));
      for (const { run } of tabs) {
        if (inSight.has(run) && !now.has(run)) {
          touch(run);
        }
      }
      inSight = now;
    });
  }

  dispose(): void {
    this.subscription.dispose();
    this.timers.forEach(clearTimeout);
  }

  private later(delay: number, act: () => void): void {
    const timer = setTimeout(() => {
      this.timers.delete(timer);
      act();
    }, delay);
    this.timers.add(timer);
  }

  /** Shows a run's report. `source` is the analyzed document, whose earlier report gives up its tab. */
  async show(run: string, source: string, takeFocus = false): Promise<void> {
    const uri = vscode.Uri.from({ scheme: SCHEME, path: reportPath(run, baseName(source)) });
    const tabs = reportTabs();
    const same = tabs.find(({ run: other }) => other === run);
    const earlier = same ?? tabs.find(({ run: other }) => this.runs.get(other)?.uri === source);
    await vscode.commands.executeCommand('vscode.openWith', same?.uri ?? uri, PREVIEW, {
      viewColumn: same?.tab.group.viewColumn ?? besideColumn(),
      preserveFocus: !takeFocus,
      preview: false,
    } satisfies vscode.TextDocumentShowOptions);
    if (earlier !== undefined && same === undefined) {
      await vscode.window.tabGroups.close(earlier.tab, true);
    }
  }

  /** Where charts open: with the reports. */
  outputColumn(): vscode.ViewColumn {
    return besideColumn();
  }

  /** The run whose report is the active tab. */
  activeRun(): string | undefined {
    return runOf(vscode.window.tabGroups.activeTabGroup.activeTab);
  }
}

/** Named by its number, a column would become the active one though the focus stays: beside is the only other way to say it. */
function besideColumn(): vscode.ViewColumn {
  const active = vscode.window.tabGroups.activeTabGroup;
  // With no file open, or one of our documents in front, there is nothing to stand beside.
  const ours = tabUri(active.activeTab)?.scheme === SCHEME;
  return active.tabs.length === 0 || ours ? vscode.ViewColumn.Active : vscode.ViewColumn.Beside;
}

function reportTabs(): { tab: vscode.Tab; run: string; uri: vscode.Uri }[] {
  return vscode.window.tabGroups.all.flatMap((group) =>
    group.tabs.flatMap((tab) => {
      const run = runOf(tab);
      const uri = tabUri(tab);
      return run === undefined || uri === undefined ? [] : [{ tab, run, uri }];
    }),
  );
}

function runOf(tab: vscode.Tab | undefined): string | undefined {
  const uri = tabUri(tab);
  const target = uri?.scheme === SCHEME ? parsePath(uri.path) : undefined;
  return target?.kind === 'report' ? target.run : undefined;
}

function tabUri(tab: vscode.Tab | undefined): vscode.Uri | undefined {
  const input = tab?.input;
  return input instanceof vscode.TabInputCustom || input instanceof vscode.TabInputText ? input.uri : undefined;
}
