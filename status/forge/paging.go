package forge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// maxItems is the maximum number of items that are read of a list.
const maxItems = 1000

// more reports whether there is another page. The forge's link to it is not used, because the number of the
// next page is known.
func more(h http.Header) bool {
	if h.Get("X-Next-Page") != "" { // GitLab
		return true
	}
	return slices.ContainsFunc(h.Values("Link"), func(v string) bool { return strings.Contains(v, `rel="next"`) })
}

// total returns the number of items on all pages together, or -1 if the forge does not say.
func total(h http.Header) int {
	for _, name := range []string{"X-Total-Count", "X-Total"} { // Gitea, GitLab
		if n, err := strconv.Atoi(h.Get(name)); err == nil && n >= 0 {
			return n
		}
	}
	return -1
}

// eachPage reads the pages of a list until the last one. read returns the number of items that were not on
// earlier pages.
func eachPage(size int, read func(page int) (int, answer, error)) error {
	seen := 0
	for page := 1; page <= (maxItems+size-1)/size; page++ {
		n, a, err := read(page)
		if err != nil {
			return err
		}
		if seen += n; n == 0 || !a.more && seen >= a.total {
			return nil
		}
	}
	return nil
}

// thereAndBack is eachPage for a list whose items may be deleted while it is read. A deletion moves the
// following items to the previous page, which may already have been read. So it reads all pages except the
// last again, in descending order, and finds every moved item. Forges offer no other way, because pages are
// numbered and are not tied to items.
func thereAndBack(size int, read func(page int, back bool) (int, answer, error)) error {
	last := 0
	err := eachPage(size, func(page int) (int, answer, error) {
		last = page
		return read(page, false)
	})
	for page := last - 1; page > 0 && err == nil; page-- {
		_, _, err = read(page, true)
	}
	return err
}

// conversation reads the comments of one pull request. A list without pages returns everything for each
// page.
func conversation(size int, from time.Time, read func(page int) ([]Comment, answer, error)) ([]Comment, error) {
	var out []Comment
	seen := map[int64]bool{}
	err := thereAndBack(size, func(page int, _ bool) (n int, a answer, err error) {
		list, a, err := read(page)
		for _, c := range list {
			if !seen[c.ID] {
				seen[c.ID], n = true, n+1
				out = append(out, c)
			}
		}
		return n, a, err
	})
	if err != nil {
		return nil, err
	}
	return inOrder(out, from), nil
}

// allComments contains the comments on all pull requests since a time, and the ETag of the response if it
// was one page.
type allComments struct {
	mu   sync.Mutex
	last lastAnswer[[]Comment]
}

// read requests all comments, unless they are unchanged. Comments that are not on a pull request have the
// number 0.
func (s *allComments) read(size int, from time.Time, read func(page int, etag string) ([]Comment, answer, error)) ([]Comment, error) {
	s.mu.Lock()
	was := s.last
	s.mu.Unlock()
	now := lastAnswer[[]Comment]{name: from.UTC().Truncate(time.Second).String()}
	if was.name != now.name {
		was = lastAnswer[[]Comment]{}
	}
	err := thereAndBack(size, func(page int, back bool) (int, answer, error) {
		etag := ""
		if page == 1 && !back {
			etag = was.etag
		}
		list, a, err := read(page, etag)
		if a.same {
			now = was
			return 0, a, nil
		}
		for _, c := range list {
			if c.Number != 0 {
				now.value = append(now.value, brief(c))
			}
		}
		if page == 1 && !a.more && !back {
			now.etag = a.etag // the ETag of the complete list
		}
		return len(list), a, err
	})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = now
	return inOrder(slices.Clone(now.value), from), nil
}

// numberAtEnd returns the number at the end of an address, 0 if none exists.
func numberAtEnd(address string) int64 {
	n, err := strconv.ParseInt(address[strings.LastIndex(address, "/")+1:], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// pullPager reads one page of the open pull requests, the ones that changed last first.
type pullPager interface {
	// repositoryURL identifies the list, so that a cursor cannot be used for another list.
	repositoryURL() string
	pageSize() int
	pullPage(ctx context.Context, page int, etag string) ([]PullRequest, answer, error)
}

// pageMark describes a page at the last read.
type pageMark struct {
	ETag  string `json:"e,omitempty"`
	Sum   string `json:"s"`
	More  bool   `json:"m,omitempty"`
	Total int    `json:"t"`
}

// mark is the content of a Cursor.
type mark struct {
	Of    string     `json:"of"`
	Pages []pageMark `json:"p"`
}

func readCursor(c Cursor, of string) mark {
	var m mark
	if json.Unmarshal([]byte(c), &m) != nil || m.Of != of || len(m.Pages) > maxItems {
		return mark{Of: of}
	}
	return m
}

func (m mark) cursor() Cursor {
	text, err := json.Marshal(m)
	if err != nil {
		return "" // an empty cursor reads everything
	}
	return Cursor(text)
}

func markOf(list []PullRequest, a answer) pageMark {
	text, err := json.Marshal(list)
	if err != nil {
		text = nil // its hash matches no list
	}
	sum := sha256.Sum256(text)
	return pageMark{ETag: a.etag, Sum: hex.EncodeToString(sum[:12]), More: a.more, Total: a.total}
}

// listPulls lists all open pull requests, or reports that they are unchanged since the cursor.
func listPulls(ctx context.Context, p pullPager, after Cursor) (list []PullRequest, next Cursor, unchanged bool, err error) {
	was := readCursor(after, p.repositoryURL())
	now, first, unchanged, err := sweep(ctx, p, was)
	if err != nil || unchanged {
		return nil, now.cursor(), unchanged && err == nil, err
	}
	now = mark{Of: was.Of}
	seen := map[int64]bool{}
	for page := 1; page <= (maxItems+p.pageSize()-1)/p.pageSize(); page++ {
		got, a := first.list, first.answer
		if page > 1 || !first.read {
			if got, a, err = p.pullPage(ctx, page, ""); err != nil {
				return nil, after, false, err
			}
		}
		now.Pages = append(now.Pages, markOf(got, a))
		for _, pr := range got {
			if !seen[pr.Number] { // pull requests that changed during the read moved to another page
				seen[pr.Number] = true
				list = append(list, pr)
			}
		}
		if !a.more || len(got) == 0 {
			break
		}
	}
	return list[:min(len(list), maxItems)], now.cursor(), false, nil
}

// mergedSince reads pages of closed pull requests, the ones that changed last first, until they are older
// than a time.
func mergedSince(size int, from time.Time, read func(page int) ([]PullRequest, answer, error)) (list []PullRequest, whole bool, err error) {
	from = from.Truncate(time.Second) // the times of forges are whole seconds
	for page := 1; page <= (maxItems+size-1)/size; page++ {
		got, a, err := read(page)
		if err != nil {
			return nil, false, err
		}
		for _, p := range got {
			if p.State == Merged && !p.UpdatedAt.Before(from) {
				list = append(list, p)
			}
		}
		if !a.more || len(got) == 0 || got[len(got)-1].UpdatedAt.Before(from) {
			return list, true, nil
		}
	}
	return list, false, nil
}

type pullPage struct {
	read   bool
	list   []PullRequest
	answer answer
}

// sweep checks whether the pages are unchanged. The pull requests that changed last come first, so the
// first page and the total show every change. If a forge answers "not modified", it does not return the
// total; then each page is checked with a conditional request. first is the first page if it was read.
func sweep(ctx context.Context, p pullPager, was mark) (now mark, first pullPage, unchanged bool, err error) {
	now = mark{Of: was.Of}
	for i, w := range was.Pages {
		list, a, err := p.pullPage(ctx, i+1, w.ETag)
		if err != nil {
			return was, first, false, err
		}
		if a.same {
			now.Pages = append(now.Pages, w)
			continue
		}
		m := markOf(list, a)
		if i == 0 {
			first = pullPage{true, list, a}
		}
		if m.Sum != w.Sum || m.More != w.More || m.Total != w.Total {
			return was, first, false, nil
		}
		now.Pages = append(now.Pages, m)
		if m.Total >= 0 && i == 0 {
			now.Pages = append(now.Pages, was.Pages[1:]...)
			break
		}
	}
	return now, first, len(was.Pages) > 0, nil
}
