package pulls

import (
	"sync"

	"github.com/weir-gitops/weir/status/forge"
)

// mostHeard is the maximum number of comments whose texts are in memory.
const mostHeard = 1024

// Heard stores the newest texts of comments that webhooks reported. A webhook contains a comment as its
// author wrote it; a moment later, the text on the forge may be different. The stored text is only compared
// with the text that is read from the forge, and never executed. The zero value is ready to use.
type Heard struct {
	mu    sync.Mutex
	texts map[int64]forge.Heard
	order []int64
}

// add stores a text. An edit stays recorded, even if later reports differ.
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

// editState reports whether a comment was edited before it was read, or whether its text is unchanged since
// it was written. Both are false if nothing was reported.
func (h *Heard) editState(c forge.Comment) (edited, same bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	was, known := h.texts[c.ID]
	if !known {
		return false, false
	}
	edited = was.Edited || was.Sum != forge.SumOf(c.Body)
	return edited, !edited
}
