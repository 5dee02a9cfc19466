// The import button of the Script tab: a file goes past Gradio's upload, which has one bound for all.

// words: the server's English refusals, each as HTML in all languages
export function mount({ element, trigger }, { path, broken, words }) {
  const [input, bar, said] = ['input', 'progress', 'em'].map((each) => element.querySelector(each));

  function ended(request) {
    let answer = {};
    try {
      answer = JSON.parse(request.responseText);
    } catch {
      // none came
    }
    [bar.hidden, input.disabled] = [true, false];
    if (answer.token) return trigger('received', { token: answer.token });
    const english = answer.error?.message ?? answer.detail ?? broken;
    if (Object.hasOwn(words, english)) said.innerHTML = words[english];
    else said.textContent = english;
  }

  input.addEventListener('change', () => {
    const [file] = input.files;
    input.value = '';
    if (!file) return;
    const request = new XMLHttpRequest();
    request.open('POST', new URL(path, document.baseURI));
    request.upload.onprogress = ({ loaded, total }) => (bar.value = loaded / total);
    request.onloadend = () => ended(request);
    [bar.value, bar.hidden, input.disabled, said.textContent] = [0, false, true, ''];
    request.send(file);
  });
}
