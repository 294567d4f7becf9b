package pulls

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/state"
)

// record is what must be known of a pull request after a restart.
type record struct {
	Number int64 `json:"number"`
	// Seen is the head as it was seen last, Labelled whether the label that allows
	// was on it from the start.
	Seen     string `json:"seen"`
	Labelled bool   `json:"labelled,omitempty"`
	// SeenAt is when the pull request had changed last as the head was seen first,
	// by the forge's clock: the head is no younger.
	SeenAt time.Time `json:"seenAt,omitzero"`
	// Heeded is the head that was seen before a look that read all comments: whoever
	// comments later may have read it.
	Heeded string `json:"heeded,omitempty"`
	// Allowed is the head that somebody let be planned.
	Allowed string `json:"allowed,omitempty"`
	// Killed is the head whose review this weir did not live to end.
	Killed string `json:"killed,omitempty"`
	// Told says that something was told of it.
	Told bool `json:"told,omitempty"`
	// What was shown last, and before that upon other commits or of other heads, the
	// newest last. Approved is by whom the last one was.
	reviewed
	Earlier  []reviewed `json:"earlier,omitempty"`
	Approved string     `json:"approved,omitempty"`
	// Comment is the newest comment that was read.
	Comment int64 `json:"comment,omitempty"`
	// MergedAt is when it was seen to be merged, MergeSHA the commit that did, "" while
	// the forge does not say.
	MergeSHA string    `json:"mergeSHA,omitempty"`
	MergedAt time.Time `json:"mergedAt,omitzero"`
}

func (r *record) merged() bool { return !r.MergedAt.IsZero() }

// readTo is up to when comments were read, by source.
var readTo = state.Bucket[time.Time]{Name: "pull-comments"}

var bucket = state.Bucket[record]{Name: "pulls"}

// reviewing are the heads that are being rendered and planned. One that is there when
// a process starts may have killed the one before.
var reviewing = state.Bucket[string]{Name: "pull-reviews"}

func (w *Watcher) key(number int64) string { return fmt.Sprintf("%s\x00%019d", w.o.Source, number) }

// records are those of the source, with what became of the reviews of the process
// before.
func (w *Watcher) records() ([]record, error) {
	var out []record
	err := w.o.DB.Update(func(tx *state.Tx) error {
		killed := map[string]string{}
		err := reviewing.ForEach(tx, w.key(0), func(key, head string) error {
			if !w.owns(key) {
				return state.ErrStop
			}
			killed[key] = head
			return nil
		})
		if err != nil {
			return err
		}
		err = bucket.ForEach(tx, w.key(0), func(key string, r record) error {
			if !w.owns(key) {
				return state.ErrStop
			}
			r.Killed = cmp.Or(killed[key], r.Killed)
			out = append(out, r)
			return nil
		})
		if err != nil {
			return err
		}
		for _, r := range out {
			if key := w.key(r.Number); killed[key] != "" {
				if err := bucket.Put(tx, key, r); err != nil {
					return err
				}
			}
		}
		for key := range killed {
			if err := reviewing.Delete(tx, key); err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}

func (w *Watcher) owns(key string) bool { return strings.HasPrefix(key, w.o.Source+"\x00") }

// attempt notes that a head is about to be rendered and planned, before it is. Without
// that nothing is begun: it would be begun again and again if it killed the process.
func (w *Watcher) attempt(p *planning) error {
	if p.noted {
		return nil
	}
	err := w.o.DB.Update(func(tx *state.Tx) error { return reviewing.Put(tx, w.key(p.was.Number), p.was.pr.HeadSHA) })
	if err != nil {
		return fmt.Errorf("state cannot be written: %w", err)
	}
	p.noted = true
	return nil
}

// survived notes that a head was rendered and planned, or given up.
func (w *Watcher) survived(p *planning) {
	if !p.noted {
		return
	}
	if err := w.o.DB.Update(func(tx *state.Tx) error { return reviewing.Delete(tx, w.key(p.was.Number)) }); err != nil {
		w.log.Error("state cannot be written", "error", err)
	}
}

// save writes what is known of a pull request. What cannot be written is known
// until the process ends.
func (w *Watcher) save(k *work) {
	if err := w.o.DB.Update(func(tx *state.Tx) error { return bucket.Put(tx, w.key(k.Number), k.record) }); err != nil {
		w.log.Error("state cannot be written", "error", err)
	}
}

// forget ends a pull request.
func (w *Watcher) forget(k *work) {
	k.drop()
	delete(w.open, k.Number)
	if err := w.o.Git.Forget(w.o.Forge.HeadRef(k.Number)); err != nil {
		w.log.Warn("the mirror keeps a closed pull request", "number", k.Number, "error", err)
	}
	w.imaging.Lock()
	defer w.imaging.Unlock()
	err := w.o.DB.Update(func(tx *state.Tx) error {
		return errors.Join(bucket.Delete(tx, w.key(k.Number)), w.leaveImages(tx, k))
	})
	if err != nil {
		w.log.Error("state cannot be written", "error", err)
	}
}

func (w *Watcher) numbers() []int64 { return slices.Sorted(maps.Keys(w.open)) }

// oldestFirst are the pull requests in the order in which they were planned last.
func (w *Watcher) oldestFirst() []int64 {
	return slices.SortedFunc(maps.Keys(w.open), func(a, b int64) int {
		return cmp.Or(w.open[a].planned.Compare(w.open[b].planned), cmp.Compare(a, b))
	})
}
