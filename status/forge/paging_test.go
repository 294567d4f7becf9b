package forge

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestPollingCosts counts the requests of looking at open pull requests: a page each
// for a list that changed, and one that is conditional where the forge knows those
// for a list that did not. None is about one pull request.
func TestPollingCosts(t *testing.T) {
	eachForge(t, func(t *testing.T, f *fakeForge, c Client) {
		size := map[Kind]int{GitHub: 100, GitLab: 100, Gitea: 50}[f.kind]
		for _, n := range []int{0, 1, 49, 50, 51, 100, 101, 250} {
			f.pulls = map[int64]*fakePull{}
			f.fill(n)
			list, cursor, unchanged, err := c.Pulls(t.Context(), "")
			if err != nil || unchanged || len(list) != n {
				t.Fatalf("%d: %d in the list, %t, %v", n, len(list), unchanged, err)
			}
			pages := max(1, (n+size-1)/size)
			if got := f.took(); len(got) != pages {
				t.Errorf("%d: the first look costs %d requests: %v", n, len(got), got)
			}
			for range 3 {
				list, cursor, unchanged, err = c.Pulls(t.Context(), cursor)
				if err != nil || !unchanged || list != nil {
					t.Fatalf("%d: nothing changed, and yet: %d, %t, %v", n, len(list), unchanged, err)
				}
				want := pages // that a page is the same says nothing of those after it
				if f.kind == Gitea {
					want = 1
				}
				got := f.took()
				if len(got) != want {
					t.Errorf("%d: to see that nothing changed costs %d requests, want %d: %v", n, len(got), want, got)
				}
				for _, r := range got {
					if f.kind != Gitea && !strings.HasSuffix(r, " ?") {
						t.Errorf("%d: not conditional: %s", n, r)
					}
				}
			}
			if n == 0 {
				continue
			}
			f.touch(int64(n+1)/2, func(p *fakePull) { p.title = "another" })
			list, _, unchanged, err = c.Pulls(t.Context(), cursor)
			if diff := cmp.Diff(f.open(), shown(list)); unchanged || err != nil || diff != "" {
				t.Errorf("%d: one changed: %t, %v\n%s", n, unchanged, err, diff)
			}
			if got := f.took(); len(got) != pages {
				t.Errorf("%d: a change costs %d requests: %v", n, len(got), got)
			}
		}
	})
}

// Asking for merges since a time costs the pages that changed since then, and stops after a thousand.
func TestMergedSince(t *testing.T) {
	eachForge(t, func(t *testing.T, f *fakeForge, c Client) {
		size := map[Kind]int{GitHub: 100, GitLab: 100, Gitea: 50}[f.kind]
		f.fill(130)
		from := f.now.Add(time.Second)
		for n := int64(1); n <= 130; n++ {
			f.touch(n, func(p *fakePull) { p.merged, p.closed = n%2 == 0, n%3 == 0 })
		}
		list, whole, err := c.MergedSince(t.Context(), from.Add(500*time.Millisecond))
		if err != nil || !whole || len(list) != 65 || list[0].Number != 130 || list[0].MergeSHA != sha1a || list[0].State != Merged {
			t.Errorf("%d in the list, whole %t, %v: %+v", len(list), whole, err, list)
		}
		f.took()
		list, whole, err = c.MergedSince(t.Context(), f.now)
		if got := f.took(); err != nil || !whole || len(list) != 1 || len(got) != 1 {
			t.Errorf("the last one: %d in the list, whole %t, %v, %v", len(list), whole, err, got)
		}
		f.pulls = map[int64]*fakePull{}
		for n := range int64(1001) {
			f.touch(n+1, func(p *fakePull) { p.merged = true })
		}
		list, whole, err = c.MergedSince(t.Context(), from)
		if got := f.took(); err != nil || whole || len(list) != 1000 || len(got) != 1000/size {
			t.Errorf("too many: %d in the list, whole %t, %v, %d requests", len(list), whole, err, len(got))
		}
		f.answer = func(*http.Request) (int, http.Header, string) { return http.StatusForbidden, nil, "{}" }
		if _, whole, err := c.MergedSince(t.Context(), from); err == nil || whole {
			t.Errorf("refused: whole %t, %v", whole, err)
		}
	})
}

// TestPullsFollowsEveryChange edits pull requests at random: a list that is said to
// be unchanged is, and every other one is whole.
func TestPullsFollowsEveryChange(t *testing.T) {
	for _, kind := range []Kind{GitHub, GitLab, Gitea} {
		for _, plain := range []bool{false, true} {
			t.Run(fmt.Sprint(kind, " plain ", plain), rapid.MakeCheck(func(t *rapid.T) {
				f := newFakeForge(kind)
				f.plain = plain
				c, err := New(ClientOptions{Kind: kind, URL: "https://git.example.com", Repository: map[bool]string{true: deepRepo, false: fleetRepo}[kind == GitLab], Transport: f,
					Token: staticToken})
				if err != nil {
					t.Fatal(err)
				}
				switch c := c.(type) { // small pages, so that every page begins and ends somewhere
				case *gitHub:
					c.size = 5
				case *gitLab:
					c.size = 5
				}
				n := rapid.SampledFrom([]int{0, 1, 4, 5, 6, 10, 14}).Draw(t, "n")
				f.fill(n)
				var cursor Cursor
				var have []string
				for range rapid.IntRange(1, 10).Draw(t, "looks") {
					for range rapid.IntRange(0, 2).Draw(t, "changes") {
						number := int64(rapid.IntRange(1, n+2).Draw(t, "number"))
						f.touch(number, map[string]func(*fakePull){
							"edit":   func(p *fakePull) { p.title += "!" },
							"label":  func(p *fakePull) { p.labels = append(p.labels, "x") },
							"close":  func(p *fakePull) { p.closed = true },
							"reopen": func(p *fakePull) { p.closed = false },
						}[rapid.SampledFrom([]string{"edit", "label", "close", "reopen"}).Draw(t, "what")])
					}
					list, next, unchanged, err := c.Pulls(t.Context(), cursor)
					if err != nil {
						t.Fatal(err)
					}
					if !unchanged {
						have = shown(list)
					}
					if diff := cmp.Diff(f.open(), have); diff != "" {
						t.Fatalf("unchanged %t (-want +got):\n%s", unchanged, diff)
					}
					cursor = next
				}
			}))
		}
	}
}

// TestAForeignCursorReadsEverything: it may be damaged, or be another repository's.
func TestAForeignCursorReadsEverything(t *testing.T) {
	eachForge(t, func(t *testing.T, f *fakeForge, c Client) {
		f.fill(3)
		_, cursor, _, err := c.Pulls(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		other := Cursor(strings.ReplaceAll(string(cursor), "git.example.com", "git.example.org"))
		for _, bad := range []Cursor{"x", "{}", "null", cursor[:len(cursor)/2], other} {
			list, again, unchanged, err := c.Pulls(t.Context(), bad)
			if err != nil || unchanged || len(list) != 3 || again != cursor {
				t.Errorf("%q: %d, %t, %v", bad, len(list), unchanged, err)
			}
		}
	})
}

// TestEndlessPages: weir gives up at some time on a forge that always has another page.
func TestEndlessPages(t *testing.T) {
	eachForge(t, func(t *testing.T, f *fakeForge, c Client) {
		f.fill(250)
		f.answer = func(r *http.Request) (int, http.Header, string) {
			q := r.URL.Query()
			q.Set("page", "1")
			r.URL.RawQuery = q.Encode()
			return 0, nil, "" // page 1 each time
		}
		list, _, _, err := c.Pulls(t.Context(), "")
		pages, size := map[Kind]int{GitHub: 10, GitLab: 10, Gitea: 20}[f.kind], map[Kind]int{GitHub: 100, GitLab: 100, Gitea: 50}[f.kind]
		if err != nil || len(list) != size || len(f.took()) != pages {
			t.Errorf("%d, %v", len(list), err)
		}
		f.comments = talk(250)
		if said, err := c.Comments(t.Context(), 1, time.Time{}); err != nil || f.kind != Gitea && len(said) != size {
			t.Errorf("%d comments, %v", len(said), err)
		}
		if got := f.took(); len(got) > 20 {
			t.Errorf("%d requests for comments", len(got))
		}
	})
}

// TestManyPullsAreBounded lists the thousand that changed last.
func TestManyPullsAreBounded(t *testing.T) {
	eachForge(t, func(t *testing.T, f *fakeForge, c Client) {
		f.fill(1234)
		list, cursor, _, err := c.Pulls(t.Context(), "")
		if err != nil || len(list) != maxItems || list[0].Number != 1234 {
			t.Fatalf("%d, %v", len(list), err)
		}
		if !slices.IsSortedFunc(list, func(a, b PullRequest) int { return b.UpdatedAt.Compare(a.UpdatedAt) }) {
			t.Error("not those that changed last")
		}
		if len(cursor) > 4<<10 {
			t.Errorf("a cursor of %d bytes", len(cursor))
		}
		if _, _, unchanged, err := c.Pulls(t.Context(), cursor); !unchanged || err != nil {
			t.Errorf("%t, %v", unchanged, err)
		}
	})
}

// BenchmarkPollPullRequests looks at 100 open pull requests, of which none changed.
func BenchmarkPollPullRequests(b *testing.B) {
	for _, kind := range []Kind{GitHub, GitLab, Gitea} {
		b.Run(string(kind), func(b *testing.B) {
			f := newFakeForge(kind)
			f.fill(100)
			c := f.client(b)
			_, cursor, _, err := c.Pulls(b.Context(), "")
			if err != nil {
				b.Fatal(err)
			}
			f.took()
			calls := 0
			for b.Loop() {
				_, next, unchanged, err := c.Pulls(b.Context(), cursor)
				if err != nil || !unchanged {
					b.Fatal(unchanged, err)
				}
				cursor = next
				calls += len(f.took())
			}
			b.ReportMetric(float64(calls)/float64(b.N), "calls/op")
		})
	}
}

// TestWhatIsDeletedHidesNothing: while a list is read, some of it is deleted, more is added
// at its end, and what was there all the time is found.
func TestWhatIsDeletedHidesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const size = 3
		var list []Comment
		add := func(id int64) {
			list = append(list, Comment{ID: id, Number: 1, CreatedAt: time.Unix(id, 0), UpdatedAt: time.Unix(id, 0)})
		}
		n := rapid.Int64Range(0, 15).Draw(t, "comments")
		for id := range n {
			add(id + 1)
		}
		asked := 0
		read := func(page int) ([]Comment, answer, error) {
			for asked++; asked > 1 && len(list) > 0 && rapid.Bool().Draw(t, "deletes"); {
				i := rapid.IntRange(0, len(list)-1).Draw(t, "which")
				list = slices.Delete(slices.Clone(list), i, i+1)
			}
			if asked > 1 && rapid.Bool().Draw(t, "adds") {
				n++
				add(n)
			}
			from, to := min((page-1)*size, len(list)), min(page*size, len(list))
			return list[from:to], answer{more: to < len(list), total: -1}, nil
		}
		first := n
		one, err := conversation(size, time.Time{}, read)
		if err != nil {
			t.Fatal(err)
		}
		missing := func(what string, got []Comment) {
			for _, c := range list {
				if c.ID <= first && !slices.ContainsFunc(got, func(other Comment) bool { return other.ID == c.ID }) {
					t.Errorf("%s: %d was not found", what, c.ID)
				}
			}
		}
		missing("a conversation", one)
		first, asked = n, 0
		var s allComments
		all, err := s.read(size, time.Time{}, func(page int, _ string) ([]Comment, answer, error) { return read(page) })
		if err != nil {
			t.Fatal(err)
		}
		missing("all conversations", all)
	})
}
