package pulls

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/status/report"
)

// record contains the data about a pull request that must survive a restart.
type record struct {
	Number int64 `json:"number"`
	// Seen is the head at the last read. Labelled says that the label was already set when this head was
	// first seen.
	Seen     string `json:"seen"`
	Labelled bool   `json:"labelled,omitempty"`
	// SeenAt is the time of the pull request's last change, by the forge's clock, when the head was first
	// seen. The head was pushed no later than that.
	SeenAt time.Time `json:"seenAt,omitzero"`
	// ReadAt is the head that was seen before a poll that read all comments. The authors of later comments
	// may have read it.
	ReadAt string `json:"heeded,omitempty"`
	// Allowed is the head whose plan a user permitted.
	Allowed string `json:"allowed,omitempty"`
	// Killed is the head whose plan was running when a process was killed.
	Killed string `json:"killed,omitempty"`
	// Reported says that weir has shown a state of the pull request.
	Reported bool `json:"told,omitempty"`
	// reviewed is the last shown plan. Earlier contains earlier plans, of other heads or against other
	// commits, the newest last. Approved is the user who approved the last plan.
	reviewed
	Earlier  []reviewed `json:"earlier,omitempty"`
	Approved string     `json:"approved,omitempty"`
	// Comment is the newest read comment. Left says that the pull request is not open. It is stored only
	// because forges still list its comments for a while, and because its final state may not have been
	// reported yet.
	Comment int64        `json:"comment,omitempty"`
	Left    bool         `json:"left,omitempty"`
	Last    *report.Pull `json:"last,omitempty"`
	// Acted lists the commands that weir executed or answered, the newest last. Refused is the last
	// refusal, which is not repeated.
	Acted   []acted `json:"acted,omitempty"`
	Refused string  `json:"refused,omitempty"`
	// MergedAt is the time at which the merge was seen. MergeSHA is the merge commit, "" until the forge
	// reports it.
	MergeSHA string    `json:"mergeSHA,omitempty"`
	MergedAt time.Time `json:"mergedAt,omitzero"`
}

func (r *record) merged() bool { return !r.MergedAt.IsZero() }

// readTo contains the time up to which comments were read, by source.
var readTo = state.Bucket[time.Time]{Name: "pull-comments"}

var bucket = state.Bucket[record]{Name: "pulls"}

// reviewing contains the heads that are being planned. If a head is present when a process starts, its plan
// may have killed the previous process.
var reviewing = state.Bucket[string]{Name: "pull-reviews"}

// records gives access to the stored data about a source's pull requests.
type records struct {
	*Options
}

func (r records) key(number int64) string { return fmt.Sprintf("%s\x00%019d", r.Source, number) }

// each calls do for all records of the source in a bucket.
func each[V any](tx *state.Tx, of records, b state.Bucket[V], do func(key string, v V) error) error {
	return b.ForEach(tx, of.key(0), func(key string, v V) error {
		if !strings.HasPrefix(key, of.Source+"\x00") {
			return state.ErrStop
		}
		return do(key, v)
	})
}

// write changes the state directory, and reports whether that succeeded. After a failure, the record stays
// in memory only.
func (r records) write(change func(*state.Tx) error) bool {
	err := r.DB.Update(change)
	if err != nil {
		r.Logger.Error("state cannot be written", "source", r.Source, "error", err)
	}
	return err == nil
}

// all returns the records of all pull requests. It sets Killed for heads whose plan the previous process
// did not finish.
func (r records) all() (out []record, err error) {
	err = r.DB.Update(func(tx *state.Tx) error {
		out = nil
		killed := map[string]string{}
		err := each(tx, r, reviewing, func(key, head string) error { killed[key] = head; return nil })
		if err != nil {
			return err
		}
		err = each(tx, r, bucket, func(key string, known record) error {
			known.Killed = cmp.Or(killed[key], known.Killed)
			out = append(out, known)
			return nil
		})
		if err != nil {
			return err
		}
		for _, known := range out {
			if key := r.key(known.Number); killed[key] != "" {
				if err := bucket.Put(tx, key, known); err != nil {
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

// attempt records that a head is about to be planned. If that fails, the plan must not start, because a
// plan that kills the process would start again after every restart.
func (r records) attempt(p *planning) error {
	if p.noted {
		return nil
	}
	err := r.DB.Update(func(tx *state.Tx) error { return reviewing.Put(tx, r.key(p.was.Number), p.was.pr.HeadSHA) })
	if err != nil {
		return fmt.Errorf("state cannot be written: %w", err)
	}
	p.noted = true
	return nil
}

// survived records that the plan of a head has ended.
func (r records) survived(p *planning) {
	if p.noted {
		r.write(func(tx *state.Tx) error { return reviewing.Delete(tx, r.key(p.was.Number)) })
	}
}

// save writes the record of a pull request.
func (r records) save(k *openPull) {
	r.write(func(tx *state.Tx) error { return bucket.Put(tx, r.key(k.Number), k.record) })
}

// since returns the time up to which comments were read. weir ignores comments from before its first poll.
func (r records) since() (at time.Time, err error) {
	err = r.DB.Update(func(tx *state.Tx) error {
		var known bool
		if at, known, err = readTo.Get(tx, r.Source); err != nil || known {
			return err
		}
		at = r.Now()
		return readTo.Put(tx, r.Source, at)
	})
	return at, err
}

// storeLeft writes the remaining data of a pull request that is no longer open.
func (r records) storeLeft(tx *state.Tx, l left) error {
	if l.empty() {
		return bucket.Delete(tx, r.key(l.Number))
	}
	return bucket.Put(tx, r.key(l.Number), l.record)
}
