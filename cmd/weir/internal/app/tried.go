package app

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/refusals"
	"github.com/weir-gitops/weir/reconciler/state"
)

var (
	// tried contains failed attempts, by place, role and target.
	tried = state.Bucket[refusals.Stored]{Name: "tried"}
	// again contains the targets for which a user requested a retry, until their owner starts it.
	again = state.Bucket[time.Time]{Name: "again"}
)

// againFor is the time that the engine keeps a request for a retry.
const againFor = time.Hour

// tries implements reconciler.AttemptStore for a scope that this daemon owns.
type tries struct {
	store state.Store
	// writes returns the store to write to; nil when this daemon no longer owns the scope.
	writes func() state.Store
	prefix string
	redact func(string) string
}

// Recall implements reconciler.AttemptStore.
func (t tries) Recall() (out map[string]refusals.Stored, err error) {
	err = t.store.View(func(tx *state.Tx) error {
		out = map[string]refusals.Stored{}
		return tried.ForEach(tx, t.prefix, func(key string, v refusals.Stored) error {
			target, is := strings.CutPrefix(key, t.prefix)
			if !is {
				return state.ErrStop
			}
			out[target] = v
			return nil
		})
	})
	return out, err
}

// Keep implements reconciler.AttemptStore.
func (t tries) Keep(target string, v refusals.Stored) error {
	store := t.writes()
	if store == nil {
		return fmt.Errorf("store failed attempts: %w", coord.ErrLost)
	}
	for i := range v.Refused {
		err := *v.Refused[i].Err
		err.Message = t.redact(err.Message)
		v.Refused[i].Err = &err
	}
	return store.Update(func(tx *state.Tx) error {
		if v.Empty() {
			return tried.Delete(tx, t.prefix+target)
		}
		return tried.Put(tx, t.prefix+target, v)
	})
}

// retryRequests contains requests to retry failed steps, from any member to the owners of targets.
type retryRequests struct {
	store state.Store
	log   *slog.Logger
}

// put requests the owners of targets to retry failed steps.
func (w retryRequests) put(targets []string) error {
	now := time.Now()
	return w.store.Update(func(tx *state.Tx) error {
		err := again.Remove(tx, func(at time.Time, err error) bool { return err != nil || now.Sub(at) > againFor })
		for _, target := range targets {
			err = errors.Join(err, again.Put(tx, target, now))
		}
		return err
	})
}

// claim returns the targets of a pass for which a retry was requested. Each request is returned once over
// all members. After a crash at this point, the user must request it again, because starting a rollout
// twice would be worse.
func (w retryRequests) claim(targets []string) (out []string) {
	now := time.Now()
	find := func(tx *state.Tx) error {
		out = nil
		for _, target := range targets {
			if at, ok, err := again.Get(tx, target); err != nil {
				return err
			} else if ok && now.Sub(at) <= againFor {
				out = append(out, target)
			}
		}
		return nil
	}
	err := w.store.View(find)
	if err == nil && len(out) > 0 {
		err = w.store.Update(func(tx *state.Tx) error {
			err := find(tx)
			for _, target := range out {
				err = errors.Join(err, again.Delete(tx, target))
			}
			return err
		})
	}
	if err != nil {
		w.log.Error("cannot read the requests to retry; they wait", "error", err)
		return nil
	}
	return out
}
