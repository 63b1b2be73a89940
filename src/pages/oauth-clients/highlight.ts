/** Divides the example programs into the parts that get a colour. */
import type { Program } from './programs.ts';

/** Replaces lowlight's own types, which would declare the globals of browsers in all files. */
interface Lowlight {
  readonly common: Readonly<Record<string, object>>;
  createLowlight(grammars: object): { highlight(grammar: string, code: string): Tree };
}

interface Tree {
  readonly value?: string;
  readonly properties?: { readonly className?: readonly string[] };
  readonly children?: readonly Tree[];
}

interface CodePart {
  readonly text: string;
  /** What the part is in its language, if it gets a colour. */
  readonly kind: string | undefined;
}

const COLOURED = /^hljs-(comment|meta|keyword|literal|built_in|title|string|number|symbol)$/;

/**
 * The parts of each program, by its text. In the text, marks stand in place of the values of a client,
 * so all clients share a few programs.
 */
const known = new Map<string, readonly CodePart[]>();

/** Returns the program in parts, which joined are its code. */
export async function highlighted({ name, file, grammar, marked, fill }: Program) {
  const parts = known.get(marked) ?? [...partsOf(await treeOf(grammar, marked))];
  known.set(marked, parts);
  return { name, file, parts: parts.map(({ text, kind }) => ({ text: fill(text), kind })) };
}

async function treeOf(grammar: string, code: string): Promise<Tree> {
  const { common, createLowlight }: Lowlight = await import('lowlight' as string);
  return createLowlight({ [grammar]: common[grammar] }).highlight(grammar, code);
}

function* partsOf({ value, properties, children = [] }: Tree, kind?: string): Generator<CodePart> {
  if (value !== undefined) yield { text: value, kind };
  const [, inner] = COLOURED.exec(properties?.className?.[0] ?? '') ?? [];
  for (const child of children) yield* partsOf(child, inner);
}
