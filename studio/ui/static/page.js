// What every page of the studio runs. The page's components import what they mount by themselves; it is
// loaded here, beside Gradio's scripts.

import '../gradio_compat/fetch.js';
import '../gradio_compat/accessible.js';
import '../gradio_compat/voice_search.js';
import './opening.js';
import './shortcuts.js';
import './labels.js';
import './addresses.js';
import './buttons.js';
import './level_meter.js';
import './takes.js';
import './voice_picker.js';
import './pad/pad.js';
import './map/map.js';
import './script/board.js';
import './script/project_upload.js';
