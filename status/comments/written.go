package comments

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/status/forge"
)

// written describes a comment as the forge stored it when weir last wrote it. On most forges, every user
// with write permission to a repository can edit the comments of other users. If a comment differs from
// this record, another user has edited it.
type written struct {
	ID int64 `json:"id"`
	// At is the time of the write by the forge's clock. Sum is a hash of the whole text, and Begins a hash
	// of the part that a list of all comments contains.
	At     time.Time `json:"at"`
	Sum    string    `json:"sum"`
	Begins string    `json:"begins"`
}

// writtenComments contains a record for each pull request whose comment weir wrote.
var writtenComments = state.Bucket[written]{Name: "pull-comments-written"}

func (w *writer) key(number int64) string { return fmt.Sprintf("%s\x00%019d", w.source, number) }

func sumOf(text string) string {
	sum := sha256.Sum256([]byte(plain(text)))
	return hex.EncodeToString(sum[:])
}

// writtenAs returns the record of a comment, based on the stored text in the forge's response. text is the
// written text, for a forge that does not return it.
func writtenAs(id int64, text string, now forge.Comment) written {
	if now.Body != "" {
		text = now.Body
	}
	return written{ID: id, At: now.UpdatedAt, Sum: sumOf(text), Begins: sumOf(forge.Beginning(text))}
}

// storeRecord stores the record of a comment. Without the record, weir would write the comment once more.
func (w *writer) storeRecord(number, id int64, text string, now forge.Comment) error {
	r := writtenAs(id, text, now)
	w.mu.Lock()
	w.records[number] = r
	w.mu.Unlock()
	store := w.store()
	if store == nil {
		return errNotOurs
	}
	if err := store.Update(func(tx *state.Tx) error { return writtenComments.Put(tx, w.key(number), r) }); err != nil {
		w.log.Error("state cannot be written", "error", err)
	}
	return nil
}

// unnote deletes the record of an ended pull request.
func (w *writer) unnote(number int64) {
	w.mu.Lock()
	delete(w.records, number)
	w.mu.Unlock()
	store := w.store()
	if store == nil {
		return
	}
	if err := store.Update(func(tx *state.Tx) error { return writtenComments.Delete(tx, w.key(number)) }); err != nil {
		w.log.Error("state cannot be written", "error", err)
	}
}

// last returns the record of the last comment on a pull request, without an ID if weir wrote none.
func (w *writer) last(number int64) (r written, err error) {
	w.mu.Lock()
	r, known := w.records[number]
	w.mu.Unlock()
	store := w.store()
	if known || store == nil {
		return r, nil
	}
	err = store.View(func(tx *state.Tx) error {
		r, _, err = writtenComments.Get(tx, w.key(number))
		return err
	})
	if err == nil && r.ID != 0 {
		w.mu.Lock()
		w.records[number] = r
		w.mu.Unlock()
	}
	return r, err
}

// recognize compares weir's comment with its record. A comment without a record, written by an earlier
// release, is accepted unchanged.
func (w *writer) recognize(t *pullComment, number int64, last written, c forge.Comment) error {
	switch now := writtenAs(c.ID, c.Body, c); {
	case last.ID != c.ID:
		return w.storeRecord(number, c.ID, c.Body, c)
	case !now.At.Equal(last.At) || now.Sum != last.Sum:
		t.foreign = true
		w.log.Warn("somebody edited weir's comment on a pull request: weir writes it again", "pull", number, "comment", c.WebURL)
	}
	return nil
}

// Written compares a comment, read from the forge, with the record of weir's last write to its pull
// request. intact means that they are the same. edited means that another user has edited the comment
// since. If both are false, the comment was read before weir wrote it, or weir is writing it. whole says
// that the comment contains its whole text.
func (p *Comments) Written(source string, c forge.Comment, whole bool) (intact, edited bool) {
	w := p.writers[source]
	if w == nil {
		return false, false
	}
	w.mu.Lock()
	t := w.pulls[c.Number]
	writing := t != nil && t.open
	w.mu.Unlock()
	last, err := w.last(c.Number)
	if err != nil || last.ID != c.ID || c.UpdatedAt.Before(last.At) {
		return false, false
	}
	now := writtenAs(c.ID, c.Body, c)
	if c.UpdatedAt.Equal(last.At) && now.Begins == last.Begins && (!whole || now.Sum == last.Sum) {
		return true, false
	}
	return false, !writing
}

// Again makes the next Show of a pull request search for its comment and write it in any case: as a new
// comment if it was deleted, and over the edits of other users.
func (p *Comments) Again(source string, number int64) {
	w := p.writers[source]
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.pulls[number]; t != nil {
		t.again = true
	}
}
