/**
 * Conversations for the editor's language model: no system role there, and a limit on what goes in.
 */
import type { ChatMessage, ChatTool } from './lsp_ext';

/** A turn as the editor's models know them. */
export interface Turn {
  role: 'user' | 'assistant';
  text: string;
}

/** Turns of two roles: system texts join the first user turn, tool results are user turns, equal neighbours become one. */
export function toTurns(messages: readonly ChatMessage[]): Turn[] {
  const turns: Turn[] = [];
  for (const { role, content } of messages) {
    const turn: Turn = { role: role === 'assistant' ? 'assistant' : 'user', text: content };
    const last = turns.at(-1);
    if (last?.role === turn.role) {
      last.text += `\n\n${turn.text}`;
    } else if (turn.text.trim() !== '') {
      turns.push(turn);
    }
  }
  return turns;
}

/** What stands where turns were left out. */
export const OMITTED = '[Earlier steps were left out to fit the size limit of the language model.]';

/**
 * Which turns fit into `limit` tokens: the first (task and files) and as many of the last as there is room for.
 * `undefined` when not even the first and the last fit.
 */
export function fit(turns: readonly Turn[], counts: readonly number[], limit: number): Turn[] | undefined {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total <= limit) {
    return [...turns];
  }
  const [first] = turns;
  let room = limit - (counts[0] ?? 0);
  let from = turns.length;
  while (from > 1 && (counts[from - 1] ?? 0) <= room) {
    from -= 1;
    room -= counts[from] ?? 0;
  }
  if (first === undefined || from === turns.length) {
    return undefined;
  }
  return [{ role: first.role, text: `${first.text}\n\n${OMITTED}` }, ...turns.slice(from)];
}

/** The JSON schema of a tool's arguments, by whichever name it came. */
export function toolSchema(tool: ChatTool): object {
  return tool.inputSchema ?? tool.parameters ?? { type: 'object', properties: {} };
}
