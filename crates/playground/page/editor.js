// The editor of a scenario: colours, completion, and what is wrong at its place.
import { acceptCompletion, autocompletion, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { HighlightStyle, StreamLanguage, bracketMatching, syntaxHighlighting } from "@codemirror/language";
import { toml } from "@codemirror/legacy-modes/mode/toml";
import { lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { EditorState } from "@codemirror/state";
import { EditorView, drawSelection, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";

import { complete } from "./schema.js";

// Colours are the page's variables, which are others in the dark.
const colours = HighlightStyle.define([
  { tag: tags.comment, color: "var(--dim)", fontStyle: "italic" },
  { tag: tags.string, color: "var(--good)" },
  { tag: [tags.number, tags.bool, tags.atom], color: "var(--focus)" },
  { tag: tags.propertyName, color: "var(--ink)" },
]);

/** A finding of the simulator, at its word in the text. */
const place = (doc, { line = 1, column = 1, severity, message, help, file }) => {
  // `--set` and `--law` are no part of the text.
  const isOfText = file == null || file === "scenario.toml";
  const of = doc.line(Math.min(isOfText ? line : 1, doc.lines));
  // Columns count characters, places their halves.
  const from = Math.min(of.from + [...of.text].slice(0, column - 1).join("").length, of.to);
  const rest = doc.sliceString(from, of.to);
  const word = /^("[^"]*"|'[^']*'|[\w.:-]+|.)/.exec(rest)?.[0] ?? "";
  return { from, to: from + word.length, severity, message: help ? `${message}\n${help}` : message };
};

export class Editor {
  /** `onChange` hears the text after somebody changed it; `onRun` hears Ctrl+Enter. */
  constructor(parent, { onChange, onRun }) {
    const run = () => {
      onRun();
      return true;
    };
    this.view = new EditorView({
      parent,
      state: EditorState.create({
        extensions: [
          lineNumbers(), lintGutter(), history(), drawSelection(), highlightActiveLine(), bracketMatching(),
          StreamLanguage.define(toml), syntaxHighlighting(colours),
          autocompletion({ override: [complete], activateOnTyping: true }),
          EditorState.tabSize.of(4),
          EditorView.lineWrapping,
          EditorView.contentAttributes.of({ "aria-label": "Scenario", "aria-describedby": "editor-keys", spellcheck: "false" }),
          // Tab completes where a list is open, and leaves the editor otherwise.
          keymap.of([{ key: "Mod-Enter", run }, { key: "Tab", run: acceptCompletion }, ...completionKeymap, ...lintKeymap,
            ...historyKeymap, ...defaultKeymap]),
          EditorView.updateListener.of(update => {
            if (update.docChanged) onChange(this.text, update.transactions.some(one => one.isUserEvent("slider")));
          }),
        ],
      }),
    });
  }

  get text() {
    return this.view.state.sliceDoc();
  }

  set text(text) {
    this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert: text } });
  }

  /** Replaces a part, as a slider does. */
  replace(from, to, insert) {
    this.view.dispatch({ changes: { from, to, insert }, userEvent: "slider" });
  }

  show(findings) {
    const { doc } = this.view.state;
    this.view.dispatch(setDiagnostics(this.view.state, findings.map(finding => place(doc, finding))));
  }

  /** Goes to a place of the text. */
  go(line, column) {
    const { from } = place(this.view.state.doc, { line, column });
    this.view.dispatch({ selection: { anchor: from }, scrollIntoView: true });
    this.view.focus();
  }
}
