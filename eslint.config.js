// The page's JavaScript: modules in the browser, one file on the audio thread, tests in node.

import js from '@eslint/js';
import globals from 'globals';

export default [
  js.configs.recommended,
  {
    files: ['studio/ui/**/*.js'],
    languageOptions: { globals: globals.browser },
    rules: { eqeqeq: 'error', 'no-var': 'error', 'prefer-const': 'error', 'no-shadow': 'error' },
  },
  {
    files: ['studio/ui/static/player/worklet.js'],
    languageOptions: { globals: globals.audioWorklet },
  },
  { files: ['tests/javascript/*.js'], languageOptions: { globals: globals.node } },
  { ignores: ['studio/ui/gradio_compat/on_*.js'] }, // bodies of functions that Gradio makes
];
