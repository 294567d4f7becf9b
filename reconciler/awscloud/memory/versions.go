package memory

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
)

// The version cache forgets a template that no pass has seen for a while, and
// keeps a bounded number of versions of each: the newest, which are those that
// groups run and plans compare with.
const (
	versionsUnusedFor = time.Hour
	versionsKept      = 32
)

// Versions holds template versions, which AWS never changes. The maps in it
// are never changed either, so that states may share them: an addition makes a
// new map.
type Versions struct {
	mu        sync.Mutex
	templates map[string]templateVersions // by template id
	swept     time.Time
}

type templateVersions struct {
	versions map[int64]observed.TemplateVersion
	used     time.Time
	// all are the numbers of the versions that there were while newest was the
	// newest; nil before the first question.
	all      []int64
	contents map[int64]string
	newest   int64
}

// Recall puts the known versions into each of the templates.
func (c *Versions) Recall(templates map[string]observed.Template, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, t := range templates {
		known, ok := c.templates[t.ID]
		if !ok {
			continue
		}
		known.used = now
		c.templates[t.ID] = known
		t.Versions = known.versions
		templates[name] = t
	}
	if now.Sub(c.swept) >= versionsUnusedFor {
		c.swept = now
		maps.DeleteFunc(c.templates, func(_ string, v templateVersions) bool { return now.Sub(v.used) >= versionsUnusedFor })
	}
}

// Add remembers versions of a template and returns all that are known of it.
func (c *Versions) Add(id string, versions []observed.TemplateVersion, now time.Time) map[int64]observed.TemplateVersion {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := maps.Clone(c.templates[id].versions)
	if all == nil {
		all = make(map[int64]observed.TemplateVersion, len(versions))
	}
	for _, v := range versions {
		all[v.Number] = v
	}
	if len(all) > versionsKept {
		for _, n := range slices.Sorted(maps.Keys(all))[:len(all)-versionsKept] {
			if !slices.ContainsFunc(versions, func(v observed.TemplateVersion) bool { return v.Number == n }) {
				delete(all, n)
			}
		}
	}
	entry := c.templates[id]
	entry.versions, entry.used = all, now
	c.templates[id] = entry
	return all
}

// Forget forgets the versions of a template, so that they are read again.
func (c *Versions) Forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.templates, id)
}

// Numbers returns a template's version numbers, ascending, with the contents in their descriptions;
// nil if they must be read.
func (c *Versions) Numbers(id string, newest int64) ([]int64, map[int64]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.templates[id]; known.newest == newest {
		return known.all, known.contents
	}
	return nil, nil
}

// SetNumbers remembers the versions that a template has and returns them as Numbers
// does.
func (c *Versions) SetNumbers(id string, newest int64, contents map[int64]string) ([]int64, map[int64]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry := c.templates[id]
	entry.all = slices.AppendSeq(make([]int64, 0, len(contents)), maps.Keys(contents))
	slices.Sort(entry.all)
	if entry.contents, entry.newest = contents, newest; entry.all == nil || !slices.Contains(entry.all, newest) {
		entry.newest = 0 // a read that is behind is no answer for the next pass
	}
	c.templates[id] = entry
	return entry.all, contents
}

// ForgetNumbers forgets which versions a template has, so that they are read again.
func (c *Versions) ForgetNumbers(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry := c.templates[id]
	entry.all, entry.contents, entry.newest = nil, nil, 0
	c.templates[id] = entry
}
