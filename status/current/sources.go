package current

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/live"
	"github.com/weir-gitops/weir/status/report"
)

// Source is the current state of a repository and the ref that weir follows in it.
type Source struct {
	Name string `json:"name"`
	// URL is stored without user, password and query.
	URL string `json:"url"`
	// Ref describes the followed ref, such as "branch main".
	Ref string `json:"ref"`
	// Revision is the full hash of the last fetched commit, empty before the first successful
	// fetch. Subject is the first line of its message.
	Revision string `json:"revision"`
	Subject  string `json:"subject"`
	// FetchedAt is the time of the last successful fetch.
	FetchedAt time.Time `json:"fetchedAt,omitzero"`
	// ChangedAt is the time at which Revision was first fetched. Sources fills it in.
	ChangedAt time.Time `json:"changedAt,omitzero"`
	// Error is the reason why the last fetch failed, or "".
	Error string `json:"error,omitempty"`
	// WebURL is the repository's address on its forge for a browser, and Forge the kind of forge: github,
	// gitlab, gitea or forgejo. If they are empty, weir derives them from URL if it can. Otherwise, commits
	// and files have no links.
	WebURL string `json:"webURL,omitempty"`
	Forge  string `json:"forge,omitempty"`
}

// Links returns the links of a source.
func (s Source) Links() forge.Links {
	return forge.NewLinks(cmp.Or(s.WebURL, s.URL), forge.Kind(s.Forge))
}

// Sources contains the configured sources.
type Sources struct {
	redact   report.Redact
	activity *Activity
	pages    *live.Watchers

	mu     sync.RWMutex
	byName map[string]Source
}

// configure replaces the list of sources. A source whose URL and ref are the same keeps its state.
func (s *Sources) configure(list []Source) {
	kept := make(map[string]Source, len(list))
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range list {
		one.URL = plainURL(one.URL)
		one.WebURL = plainURL(one.WebURL)
		if old, ok := s.byName[one.Name]; ok && old.URL == one.URL && old.Ref == one.Ref {
			old.WebURL, old.Forge = one.WebURL, one.Forge
			one = old
		}
		kept[one.Name] = one
	}
	s.byName = kept
}

// Update replaces the state of a source, and adds events if it changed. An empty Revision, Subject
// or FetchedAt keeps the earlier one, so that a failed fetch forgets nothing.
func (s *Sources) Update(next Source) {
	next.URL, next.Error, next.Subject = plainURL(next.URL), s.redact.Text(next.Error), s.redact.Text(next.Subject)
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.byName[next.Name]
	if next.Revision == "" || next.Revision == old.Revision && next.Subject == "" {
		next.Revision, next.Subject = old.Revision, old.Subject
	}
	if next.ChangedAt = old.ChangedAt; next.Revision != old.Revision {
		next.ChangedAt = next.FetchedAt
	}
	if next.FetchedAt.IsZero() {
		next.FetchedAt = old.FetchedAt
	}
	next.WebURL, next.Forge = cmp.Or(next.WebURL, old.WebURL), cmp.Or(next.Forge, old.Forge)
	s.byName[next.Name] = next
	s.announce(next)
	s.pages.Changed("")
}

// announce adds the events of a changed source: that it failed or recovered, and that it has a new commit.
func (s *Sources) announce(now Source) {
	var list []events.Event
	known := s.activity.announced(sourceKey(now.Name))
	fault := ""
	if now.Error != "" {
		fault = events.ShortHash(now.Error)
	}
	switch {
	case fault != "" && fault != known.Fault:
		list = append(list, events.Event{Kind: "source-failed", Text: now.Error})
	case fault == "" && known.Fault != "":
		list = append(list, events.Event{Kind: "source-recovered", Text: "reachable again"})
	}
	if now.Revision != known.Revision && now.Revision != "" && fault == "" {
		// The event leaves out the commit's subject, which may contain a secret. weir can redact
		// that only once it has rendered the commit, but an event is kept as it is.
		list = append(list, events.Event{Kind: "revision-seen", Revision: now.Revision, Text: "a new commit was found"})
		known.Revision = now.Revision
	}
	known.Fault = fault
	for i := range list {
		list[i].Source = now.Name
	}
	s.activity.publish(list, nil, map[string]events.Known{sourceKey(now.Name): known})
}

// SetSubject sets the first line of the message of a source's commit. Only after rendering the commit
// can weir redact secrets in that line.
func (s *Sources) SetSubject(source, revision, subject string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one, ok := s.byName[source]; ok && one.Revision == revision && one.Subject == "" {
		one.Subject = s.redact.Text(subject)
		s.byName[source] = one
	}
}

// All returns all sources by name.
func (s *Sources) All() []Source {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := slices.SortedFunc(maps.Values(s.byName), func(x, y Source) int { return cmp.Compare(x.Name, y.Name) })
	for i := range out {
		// Since it stored the text, weir may have found more secrets.
		out[i].Subject, out[i].Error = s.redact.Text(out[i].Subject), s.redact.Text(out[i].Error)
	}
	return out
}

// Links returns the links of a source, none for an unknown one.
func (s *Sources) Links(source string) forge.Links {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.byName[source].Links()
}

// plainURL returns a repository's address without user, password, query and fragment. A local path,
// or scp-like user@host:path, is not a URL and loses only a user part.
func plainURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme == "" {
		if at := strings.LastIndex(raw, "@"); at >= 0 && !strings.HasPrefix(raw, "/") && !strings.HasPrefix(raw, ".") {
			return raw[at+1:]
		}
		return raw
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}
