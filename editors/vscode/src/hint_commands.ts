/**
 * Commands of hints. VS Code keeps the arguments of a hint's command only as long as the answer that brought the hint, yet it
 * draws hints of an answer that it has already given back (when a tab comes to the front again, say): a click on one would find
 * no command. So each thing that a hint can do gets a command of its own that needs no arguments.
 */
import type * as vscode from 'vscode';

/** As many commands are kept as this; the one that was not drawn for longest goes first. */
const LIMIT = 1_000;

/** What this needs of `vscode.commands`. */
export type Commands = Pick<typeof vscode.commands, 'registerCommand' | 'executeCommand'>;

/** The commands of all hints that may be drawn. */
export class HintCommands implements vscode.Disposable {
  /** By command and arguments; in the order of their last use. */
  private readonly bound = new Map<string, { id: string; registration: vscode.Disposable }>();
  private made = 0;

  constructor(
    private readonly commands: Commands,
    private readonly limit = LIMIT,
  ) {}

  /** The hint, whose parts run commands without arguments. */
  bind(hint: vscode.InlayHint): vscode.InlayHint {
    if (typeof hint.label !== 'string') {
      for (const part of hint.label) {
        if (part.command !== undefined) {
          part.command = this.withoutArguments(part.command);
        }
      }
    }
    return hint;
  }

  dispose(): void {
    this.bound.forEach(({ registration }) => void registration.dispose());
    this.bound.clear();
  }

  private withoutArguments(command: vscode.Command): vscode.Command {
    const args = (command.arguments ?? []) as unknown[];
    if (args.length === 0) {
      return command;
    }
    const key = JSON.stringify([command.command, args]);
    const known = this.bound.get(key) ?? this.register(command.command, args);
    this.bound.delete(key);
    this.bound.set(key, known);
    for (const [oldest, { registration }] of this.bound) {
      if (this.bound.size <= this.limit) {
        break;
      }
      registration.dispose();
      this.bound.delete(oldest);
    }
    return { command: known.id, title: command.title, ...(command.tooltip === undefined ? {} : { tooltip: command.tooltip }) };
  }

  private register(command: string, args: unknown[]): { id: string; registration: vscode.Disposable } {
    this.made += 1;
    // VS Code leaves commands whose name begins with `_` out of its lists.
    const id = `_codeinterp.hint.${this.made}`;
    return { id, registration: this.commands.registerCommand(id, () => this.commands.executeCommand(command, ...args)) };
  }
}
