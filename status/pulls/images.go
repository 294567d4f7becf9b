package pulls

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/status/report"
)

// A merge applies the images that a plan on its pull request showed. They are stored by the properties that
// select them. So the images are found even if the forge has not reported the merge yet, however the pull
// request was merged, and whichever pull requests were merged with it.

const (
	// imagesFor is the time for which a plan's images are valid.
	imagesFor = 14 * 24 * time.Hour
	// maxVersions is the maximum number of template versions of one pull request whose images are stored.
	// imagesMerged is the maximum number of merged pull requests whose images are stored.
	maxVersions, imagesMerged = 20_000, 256
)

// imageRecord contains the images that a pull request's plan resolved.
type imageRecord struct {
	Number int64 `json:"number"`
	// Merged says that the forge has reported the merge, or that Git shows it.
	Merged bool `json:"merged,omitempty"`
	// At is the time of the plan. MergedAt is the time at which the end of the pull request was recorded.
	At       time.Time `json:"at"`
	MergedAt time.Time `json:"mergedAt,omitzero"`
	// Targets maps, for each target, the SourceHash of a version to the index of its image in Images.
	Images  []model.ReviewedImage     `json:"images"`
	Targets map[string]map[string]int `json:"targets"`
}

func (r imageRecord) isMerged() bool { return r.Merged || !r.MergedAt.IsZero() }

var imageRecords = state.Bucket[imageRecord]{Name: "pull-images"}

// imagesOfPlans returns the images of the launch template versions that the plans of a pull request make, by
// target and SourceHash of the version. With more than maxVersions versions, the record has no images.
func imagesOfPlans(number int64, at time.Time, reports []*plan.Report) imageRecord {
	out := imageRecord{Number: number, At: at, Targets: map[string]map[string]int{}}
	index := map[model.ReviewedImage]int{}
	n := 0
	for _, r := range reports {
		if r.Plan == nil {
			continue
		}
		resolved := r.Plan.Resolved()
		if n += len(resolved); n > maxVersions {
			return imageRecord{Number: number, At: at}
		}
		for hash, im := range resolved {
			i, known := index[im]
			if !known {
				i = len(out.Images)
				index[im], out.Images = i, append(out.Images, im)
			}
			if out.Targets[r.Target] == nil {
				out.Targets[r.Target] = map[string]int{}
			}
			out.Targets[r.Target][hash] = i
		}
	}
	return out
}

// images contains the images that plans showed, by pull request. Changes are written to the state directory
// before they are used.
type images struct {
	records
	// changing must be locked to change the records and the state directory together.
	changing state.Turn

	mu     sync.Mutex // guards the fields below
	byPull map[int64]imageRecord
}

// record returns the record of a pull request.
func (m *images) record(number int64) (imageRecord, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, known := m.byPull[number]
	return r, known
}

// put writes records, and deletes empty ones. It keeps an empty record of an open pull request,
// because weir must keep applying the images that its plan showed first.
func (m *images) put(changed map[int64]imageRecord, also ...func(*state.Tx) error) {
	over := func(r imageRecord) bool { return len(r.Targets) == 0 && (r.At.IsZero() || !r.MergedAt.IsZero()) }
	written := m.write(func(tx *state.Tx) error {
		for number, r := range changed {
			err := imageRecords.Put(tx, m.key(number), r)
			if over(r) {
				err = imageRecords.Delete(tx, m.key(number))
			}
			if err != nil {
				return err
			}
		}
		for _, do := range also {
			if err := do(tx); err != nil {
				return err
			}
		}
		return nil
	})
	if !written {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for number, r := range changed {
		if m.byPull[number] = r; over(r) {
			delete(m.byPull, number)
		}
	}
}

// storeShown stores the images of a plan that is about to be shown. It ignores plans of forks: anybody
// can open a pull request with the same content as another one, and would then choose the images that weir
// applies.
func (m *images) storeShown(k *openPull, p report.Pull) {
	if p.State != report.PullPlanned || p.Stale != "" || k.pr.Fork {
		return
	}
	m.changing.Lock()
	defer m.changing.Unlock()
	before, known := m.record(k.Number)
	if known && (before.isMerged() || before.At.Equal(k.planned)) {
		return // merged, or shown again: the images to apply stay the same
	}
	next := imagesOfPlans(k.Number, k.planned, p.Reports)
	if len(next.Targets) == 0 {
		next.At = time.Time{} // without a time and targets, put deletes the record
	}
	if known || len(next.Targets) > 0 {
		m.put(map[int64]imageRecord{k.Number: next})
	}
}

// closePull updates the images of a pull request in the transaction that forgets it. The images of a merged
// pull request stay until they expire.
func (m *images) closePull(k *openPull, forget func(*state.Tx) error) {
	m.changing.Lock()
	defer m.changing.Unlock()
	changed := map[int64]imageRecord{}
	if r, known := m.record(k.Number); known {
		if r.MergedAt = m.Now(); !k.merged() {
			r.Targets = nil
		}
		changed[k.Number] = r
	}
	m.put(changed, forget)
}

// markMerged records that a pull request is merged, according to the forge or Git. If several plans showed
// images for the same content, weir applies the images of the merged one.
func (m *images) markMerged(number int64) {
	m.changing.Lock()
	defer m.changing.Unlock()
	if r, known := m.record(number); known && !r.Merged {
		r.Merged = true
		m.put(map[int64]imageRecord{number: r})
	}
}

// read reads the records from the state directory.
func (m *images) read() error {
	var read map[int64]imageRecord
	err := m.DB.View(func(tx *state.Tx) error {
		read = map[int64]imageRecord{}
		return each(tx, m.records, imageRecords, func(_ string, r imageRecord) error { read[r.Number] = r; return nil })
	})
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.byPull = read
	return nil
}

// addReviewed adds the images that plans of its source's pull requests showed to a target. It includes open
// pull requests, because forges may report a merge late. doubt says that the images of open pull requests
// differ.
func (m *images) addReviewed(d *reconciler.Desired) (doubt bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d.Reviews, d.Reviewed = true, nil
	now := m.Now()
	open := map[string]bool{} // of the images chosen so far, the ones of unmerged plans
	for _, r := range m.inOrder() {
		for hash, i := range r.Targets[d.Policy.Target] {
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
				d.Reviewed = map[string]model.ReviewedImage{}
			}
			if other, known := d.Reviewed[hash]; known && open[hash] && (other.Lookup != im.Lookup || other.ID != im.ID) {
				doubt = true
			}
			d.Reviewed[hash] = im
			open[hash] = open[hash] || !r.isMerged()
		}
	}
	return doubt
}

// inOrder returns the records in ascending order of precedence: the merged ones last, and otherwise by the
// time of their plan. The caller holds mu.
func (m *images) inOrder() []imageRecord {
	return slices.SortedFunc(maps.Values(m.byPull), func(a, b imageRecord) int {
		if a.isMerged() != b.isMerged() {
			if b.isMerged() {
				return -1
			}
			return 1
		}
		return a.At.Compare(b.At)
	})
}

// realized deletes the images that AWS now uses as reviewed.
func (m *images) realized(r *plan.Report) {
	if r.Plan == nil {
		return
	}
	done := r.Plan.Realized(r.Pools)
	if len(done) == 0 {
		return
	}
	m.changing.Lock()
	defer m.changing.Unlock()
	m.mu.Lock()
	changed := map[int64]imageRecord{}
	for number, rec := range m.byPull {
		left := maps.Clone(rec.Targets[r.Target])
		for _, hash := range done {
			delete(left, hash)
		}
		if len(left) == len(rec.Targets[r.Target]) {
			continue
		}
		rec.Targets = maps.Clone(rec.Targets)
		if rec.Targets[r.Target] = left; len(left) == 0 {
			delete(rec.Targets, r.Target)
		}
		changed[number] = rec
	}
	m.mu.Unlock()
	if len(changed) > 0 {
		m.put(changed)
	}
}

// prune deletes the images of pull requests that were merged long ago, and of the oldest ones if there
// are too many.
func (m *images) prune() {
	m.changing.Lock()
	defer m.changing.Unlock()
	m.mu.Lock()
	old, merged := map[int64]imageRecord{}, 0
	for _, r := range slices.Backward(m.inOrder()) {
		if r.MergedAt.IsZero() {
			continue
		}
		if merged++; merged > imagesMerged || m.Now().Sub(r.MergedAt) > imagesFor {
			r.Targets = nil
			old[r.Number] = r
		}
	}
	m.mu.Unlock()
	if len(old) > 0 {
		m.put(old)
	}
}
