/**
 * The variables of the workspace's kernel.
 */
import * as vscode from 'vscode';
import type { Variable } from '../lsp_ext';
import type { Server } from '../server';
import { describeVariable } from './words';

/** Types of names that hold code, not data: a person looks for what can be asked about. */
const CODE = new Set(['function', 'builtin_function_or_method', 'module', 'type', 'ufunc', 'partial']);

/** Icons of the variables that come first. */
const ORDER = ['table', 'symbol-array'];

/** Shows the answer of `codeinterp.variables`. */
export class VariablesTree implements vscode.TreeDataProvider<Variable>, vscode.Disposable {
  private readonly changes = new vscode.EventEmitter<undefined>();
  readonly onDidChangeTreeData = this.changes.event;

  constructor(
    private readonly server: Server,
    private readonly documentUri: () => string | undefined,
    private readonly log: vscode.LogOutputChannel,
  ) {}

  dispose(): void {
    this.changes.dispose();
  }

  /** Asks the kernel again, if the view is looked at. */
  refresh(): void {
    this.changes.fire(undefined);
  }

  async getChildren(node?: Variable): Promise<Variable[]> {
    // Looking at the view starts neither a server nor a kernel.
    if (node !== undefined || this.server.running() === undefined) {
      return [];
    }
    const uri = this.documentUri();
    try {
      const variables = await this.server.execute('codeinterp.variables', uri === undefined ? {} : { uri });
      return variables.filter(({ type }) => !CODE.has(type)).sort((a, b) => rank(a.type) - rank(b.type));
    } catch (error) {
      this.log.debug(`No variables: ${String(error)}`);
      return [];
    }
  }

  getTreeItem(variable: Variable): vscode.TreeItem {
    const item = new vscode.TreeItem(variable.name);
    item.description = describeVariable(variable);
    item.iconPath = new vscode.ThemeIcon(icon(variable.type));
    item.tooltip = new vscode.MarkdownString().appendCodeblock(variable.repr.slice(0, 4_000), 'text');
    return item;
  }
}

/** Tables first, then what has many values, then the rest. */
function rank(type: string): number {
  const place = ORDER.indexOf(icon(type));
  return place === -1 ? ORDER.length : place;
}

function icon(type: string): string {
  if (/frame|table/i.test(type)) {
    return 'table';
  }
  if (/series|array|list|tuple|set|index/i.test(type)) {
    return 'symbol-array';
  }
  if (/^(int|float|complex|number)/i.test(type)) {
    return 'symbol-numeric';
  }
  return /^str/i.test(type) ? 'symbol-string' : 'symbol-variable';
}
