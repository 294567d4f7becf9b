package pulls

import (
	"sync"

	"github.com/weir-gitops/weir/status/forge"
)

// mostHeard bounds the comments whose texts are remembered.
const mostHeard = 1024

// Heard remembers the newest texts of comments that webhooks reported. A webhook contains a comment
// as its author wrote it, and a moment later the forge may have another text. The remembered text
// is compared with what is read, and never obeyed. The zero value is ready.
type Heard struct {
	mu    sync.Mutex
	texts map[int64]forge.Heard
	order []int64
}

// add remembers a text. An edit stays remembered, even if later reports differ.
func (h *Heard) add(c forge.Heard) {
	h.mu.Lock()
	defer h.mu.Unlock()
	was, known := h.texts[c.ID]
	switch {
	case known:
		was.Edited = was.Edited || c.Edited || c.Sum != was.Sum
		h.texts[c.ID] = was
		return
	case h.texts == nil:
		h.texts = map[int64]forge.Heard{}
	case len(h.order) >= mostHeard:
		delete(h.texts, h.order[0])
		h.order = h.order[1:]
	}
	h.texts[c.ID], h.order = c, append(h.order, c.ID)
}

// of returns what was reported about a comment: that it was edited before it was read, or that its
// text is unchanged since it was written. Both are false if nothing was reported.
func (h *Heard) of(c forge.Comment) (edited, same bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	was, known := h.texts[c.ID]
	if !known {
		return false, false
	}
	edited = was.Edited || was.Sum != forge.SumOf(c.Body)
	return edited, !edited
}
