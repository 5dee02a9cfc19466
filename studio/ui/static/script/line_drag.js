// A line that is dragged by its grip. Knows no server: `moved` is told where it was dropped.

const EDGE = 60; // px from the window's edge where a dragged line scrolls it

export class LineDrag {
  // moved: ({ line, target, below }) => …
  constructor(root, moved) {
    this.root = root;
    this.moved = moved;
    this.now = null; // { article, target, below } while a line is dragged
    root.addEventListener('pointerdown', (event) => this.grab(event));
    root.addEventListener('pointermove', (event) => this.to(event));
    root.addEventListener('pointerup', () => this.drop());
    root.addEventListener('pointercancel', () => this.end());
  }

  grab(event) {
    const grip = event.target.closest('[data-grip]');
    if (!grip || event.button) return;
    grip.setPointerCapture(event.pointerId);
    document.documentElement.style.userSelect = 'none'; // else the lines passed over are selected
    this.now = { article: grip.closest('article'), target: null, below: false };
  }

  to({ clientY }) {
    if (!this.now) return;
    this.now.article.classList.add('dragged');
    if (clientY < EDGE) window.scrollBy(0, -EDGE / 4);
    if (clientY > window.innerHeight - EDGE) window.scrollBy(0, EDGE / 4);
    const articles = [...this.root.querySelectorAll('article')];
    const boxes = articles.map((each) => each.getBoundingClientRect());
    let place = boxes.findIndex(({ bottom }) => clientY < bottom);
    if (place < 0) place = articles.length - 1;
    const { top, height } = boxes[place];
    this.mark(articles[place], clientY > top + height / 2);
  }

  mark(target, below) {
    const { target: before, article } = this.now;
    before?.classList.remove('drop-above', 'drop-below');
    Object.assign(this.now, { target, below });
    if (target !== article) target.classList.add(below ? 'drop-below' : 'drop-above');
  }

  drop() {
    const { article, target, below } = this.now ?? {};
    this.end();
    if (!target || target === article) return;
    const [line, onto] = [article, target].map((each) => Number(each.dataset.line));
    this.moved({ line, target: onto, below });
  }

  end() {
    if (this.now) document.documentElement.style.userSelect = '';
    this.now?.article.classList.remove('dragged');
    this.now?.target?.classList.remove('drop-above', 'drop-below');
    this.now = null;
  }
}
