package current

import (
	"maps"
	"reflect"
	"time"

	"github.com/weir-gitops/weir/status/events"
)

// announcements contains the state of every target and source that events announced last. A difference from
// it makes a new event. The owner of announcements must synchronize access.
type announcements struct {
	last map[string]events.Known // by targetKey and sourceKey
	// absent contains the times at which announced targets and sources were found not to be configured any
	// more.
	absent map[string]time.Time
}

// rememberedFor is the time for which the announced state of a removed target or source is kept. If it is
// configured again within that time, for example after a mistake in the configuration, weir repeats no
// events.
const rememberedFor = time.Hour

func targetKey(name string) string { return "target " + name }

func sourceKey(name string) string { return "source " + name }

// restore adds the states that an earlier process announced.
func (n *announcements) restore(known map[string]events.Known) { maps.Copy(n.last, known) }

// update sets announced states and returns the changed ones. It deletes unchanged states from its
// argument.
func (n *announcements) update(now map[string]events.Known) (changed map[string]events.Known) {
	for key, known := range now {
		if reflect.DeepEqual(n.last[key], known) {
			delete(now, key)
			continue
		}
		n.last[key] = known
	}
	return now
}

// configure notes which of the announced targets and sources are no longer configured.
func (n *announcements) configure(sources []Source, targets []Target, now time.Time) {
	absent := map[string]time.Time{}
	for key := range n.last {
		absent[key] = now
		if since, known := n.absent[key]; known {
			absent[key] = since
		}
	}
	for _, t := range targets {
		delete(absent, targetKey(t.Name))
	}
	for _, s := range sources {
		delete(absent, sourceKey(s.Name))
	}
	n.absent = absent
}

// forget removes the states of targets and sources that were removed long ago. It returns their keys
// with empty states, which remove them from the archive too.
func (n *announcements) forget(now time.Time) map[string]events.Known {
	gone := map[string]events.Known{}
	for key, since := range n.absent {
		if now.Sub(since) >= rememberedFor {
			gone[key] = events.Known{}
			delete(n.last, key)
			delete(n.absent, key)
		}
	}
	return gone
}
