package pulls

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/basis"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/source/snapshot"
	"github.com/weir-gitops/weir/status"
)

// The images that a plan on a pull request showed are what its merge applies. They are
// kept by what they are the images of, so that it does not matter how the pull request
// was merged, with which others, and whether the forge has told of it yet.

const (
	// imagesFor is for how long a plan's images hold.
	imagesFor = 14 * 24 * time.Hour
	// imagesOf bounds of how many versions one pull request's images are kept, and
	// imagesMerged of how many merged pull requests.
	imagesOf, imagesMerged = 20_000, 256
)

// imageRecord is what a pull request's plan resolved.
type imageRecord struct {
	Number int64 `json:"number"`
	// Merged says that the forge has told of the merge, or Git has.
	Merged bool `json:"merged,omitempty"`
	// At is when the plan was made, MergedAt when the pull request had been seen to its
	// end.
	At       time.Time `json:"at"`
	MergedAt time.Time `json:"mergedAt,omitzero"`
	// Images are shared by Targets: of each the image by what else its version holds.
	Images  []basis.ReviewedImage     `json:"images"`
	Targets map[string]map[string]int `json:"targets"`
}

func (r imageRecord) isMerged() bool { return r.Merged || !r.MergedAt.IsZero() }

var imageRecords = state.Bucket[imageRecord]{Name: "pull-images"}

// imagesOfPlans is what a shown plan resolved.
func imagesOfPlans(number int64, at time.Time, reports []*plan.Report) imageRecord {
	out := imageRecord{Number: number, At: at, Targets: map[string]map[string]int{}}
	index := map[basis.ReviewedImage]int{}
	n := 0
	for _, r := range reports {
		if r.Plan == nil {
			continue
		}
		resolved := r.Plan.Resolved()
		if n += len(resolved); n > imagesOf {
			return imageRecord{Number: number, At: at}
		}
		for source, im := range resolved {
			i, known := index[im]
			if !known {
				i = len(out.Images)
				index[im], out.Images = i, append(out.Images, im)
			}
			if out.Targets[r.Target] == nil {
				out.Targets[r.Target] = map[string]int{}
			}
			out.Targets[r.Target][source] = i
		}
	}
	return out
}

// keepImages keeps what a plan resolved that is about to be shown. A fork's plan is
// anybody's, and anybody may have the same content planned again: its images are never
// applied for that reason.
func (w *Watcher) keepImages(k *work, p status.Pull) {
	if p.State != status.PullPlanned || p.Stale != "" || k.pr.Fork {
		return
	}
	w.imaging.Lock()
	defer w.imaging.Unlock()
	w.mu.Lock()
	before, known := w.images[k.Number]
	w.mu.Unlock()
	if known && (before.isMerged() || before.At.Equal(k.planned)) {
		return // merged, or shown once more: what is applied of it stays so
	}
	next := imagesOfPlans(k.Number, k.planned, p.Reports)
	if len(next.Targets) == 0 && !known {
		return
	}
	w.changeImages(func(tx *state.Tx) error {
		if len(next.Targets) == 0 {
			return imageRecords.Delete(tx, w.key(k.Number))
		}
		return imageRecords.Put(tx, w.key(k.Number), next)
	}, func() {
		if delete(w.images, k.Number); len(next.Targets) > 0 {
			w.images[k.Number] = next
		}
	})
}

// changeImages writes first what is then used.
func (w *Watcher) changeImages(write func(*state.Tx) error, use func()) {
	if err := w.o.DB.Update(write); err != nil {
		w.log.Error("state cannot be written: reviewed images", "error", err)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	use()
}

// leaveImages ends what is known of a pull request's images, once it is merged in its
// time, and takes part in the transaction that forgets the pull request.
func (w *Watcher) leaveImages(tx *state.Tx, k *work) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	r, known := w.images[k.Number]
	switch {
	case !known:
		return nil
	case !k.merged():
		delete(w.images, k.Number)
		return imageRecords.Delete(tx, w.key(k.Number))
	}
	r.MergedAt = w.o.Now()
	w.images[k.Number] = r
	return imageRecords.Put(tx, w.key(k.Number), r)
}

// mergeImages notes that the forge or Git has told of a merge: of the images that several
// plans showed for one content, those count that are merged.
func (w *Watcher) mergeImages(number int64) {
	w.imaging.Lock()
	defer w.imaging.Unlock()
	w.mu.Lock()
	r, known := w.images[number]
	w.mu.Unlock()
	if !known || r.Merged {
		return
	}
	r.Merged = true
	w.changeImages(func(tx *state.Tx) error { return imageRecords.Put(tx, w.key(number), r) }, func() { w.images[number] = r })
}

// readImages reads what an earlier process kept.
func (w *Watcher) readImages() error {
	w.images = map[int64]imageRecord{}
	return w.o.DB.View(func(tx *state.Tx) error {
		return imageRecords.ForEach(tx, w.key(0), func(key string, r imageRecord) error {
			if !w.owns(key) {
				return state.ErrStop
			}
			w.images[r.Number] = r
			return nil
		})
	})
}

// Images gives a target the images that plans of its source's pull requests showed: of
// those that were merged, and of those that may have been, as forges tell late. Where
// these differ, and the commit changes the target, its steps wait until it is known which
// pull request the commit merges.
func (w *Watcher) Images(d *reconciler.Desired, commit snapshot.Snapshot) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d.Reviews, d.Reviewed = true, nil
	now := w.o.Now()
	open := map[string]bool{} // of what counts so far, what may not be merged
	doubt := false
	for _, r := range w.imagesInOrder() {
		for source, i := range r.Targets[d.Policy.Target] {
			if i < 0 || i >= len(r.Images) {
				continue
			}
			im := r.Images[i]
			im.By, im.At = fmt.Sprintf("the plan of pull request %d", r.Number), r.At
			end := now
			if !r.MergedAt.IsZero() {
				end = r.MergedAt
			}
			im.Outdated = end.Sub(r.At) > imagesFor
			if d.Reviewed == nil {
				d.Reviewed = map[string]basis.ReviewedImage{}
			}
			if other, known := d.Reviewed[source]; known && open[source] && (other.Lookup != im.Lookup || other.ID != im.ID) {
				doubt = true
			}
			d.Reviewed[source] = im
			open[source] = open[source] || !r.isMerged()
		}
	}
	if !doubt || !d.Touched || d.Policy.Gates.Waits != "" {
		return
	}
	if _, known := w.ruled(commit); !known {
		d.Policy.Gates.Waits = "which pull request the commit " + short(commit.Revision) + " merges is not known yet, and plans of several showed different images for what it wants"
	}
}

// imagesInOrder are the records, those last that count most: what is merged, and of
// that what was planned last. mu is held.
func (w *Watcher) imagesInOrder() []imageRecord {
	return slices.SortedFunc(maps.Values(w.images), func(a, b imageRecord) int {
		if a.isMerged() != b.isMerged() {
			if b.isMerged() {
				return -1
			}
			return 1
		}
		return a.At.Compare(b.At)
	})
}

// realized lets go of the images that AWS holds as they were reviewed.
func (w *Watcher) realized(r *plan.Report) {
	if r.Plan == nil {
		return
	}
	done := r.Plan.Realized(r.Pools)
	if len(done) == 0 {
		return
	}
	w.imaging.Lock()
	defer w.imaging.Unlock()
	w.mu.Lock()
	changed := map[int64]imageRecord{}
	for number, rec := range w.images {
		if !slices.ContainsFunc(done, func(source string) bool { _, has := rec.Targets[r.Target][source]; return has }) {
			continue
		}
		rec.Targets = maps.Clone(rec.Targets)
		left := maps.Clone(rec.Targets[r.Target])
		for _, source := range done {
			delete(left, source)
		}
		if rec.Targets[r.Target] = left; len(left) == 0 {
			delete(rec.Targets, r.Target)
		}
		changed[number] = rec
	}
	w.mu.Unlock()
	if len(changed) == 0 {
		return
	}
	w.changeImages(func(tx *state.Tx) error {
		for number, rec := range changed {
			if err := w.putImages(tx, rec, number); err != nil {
				return err
			}
		}
		return nil
	}, func() {
		for number, rec := range changed {
			if w.images[number] = rec; len(rec.Targets) == 0 && !rec.MergedAt.IsZero() {
				delete(w.images, number)
			}
		}
	})
}

// putImages writes a record. That of an open pull request stays though it is empty, so
// that what is applied of it stays so.
func (w *Watcher) putImages(tx *state.Tx, rec imageRecord, number int64) error {
	if len(rec.Targets) == 0 && !rec.MergedAt.IsZero() {
		return imageRecords.Delete(tx, w.key(number))
	}
	return imageRecords.Put(tx, w.key(number), rec)
}

// pruneImages forgets images of pull requests that were merged long ago, and of too many.
func (w *Watcher) pruneImages() {
	w.imaging.Lock()
	defer w.imaging.Unlock()
	w.mu.Lock()
	var old []int64
	merged := 0
	for _, r := range slices.Backward(w.imagesInOrder()) {
		if r.MergedAt.IsZero() {
			continue
		}
		if merged++; merged > imagesMerged || w.o.Now().Sub(r.MergedAt) > imagesFor {
			old = append(old, r.Number)
		}
	}
	w.mu.Unlock()
	if len(old) == 0 {
		return
	}
	w.changeImages(func(tx *state.Tx) error {
		for _, number := range old {
			if err := imageRecords.Delete(tx, w.key(number)); err != nil {
				return err
			}
		}
		return nil
	}, func() {
		for _, number := range old {
			delete(w.images, number)
		}
	})
}
