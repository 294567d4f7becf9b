package transport

import (
	"bytes"
	"context"
	"io"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"

	"github.com/weir-gitops/weir/source/fault"
)

const (
	// maxAdvertBytes bounds the list of refs. It is enough for about 500,000 refs.
	maxAdvertBytes = 64 << 20
	// maxRefs bounds the refs that are kept.
	maxRefs = 200_000
	// maxOverheadBytes bounds the data that a server sends before and around a pack.
	maxOverheadBytes = 16 << 20
)

// refFilter forwards only the requested refs of a list. A large repository lists hundreds of thousands of
// refs at every fetch.
type refFilter struct {
	lines *pktline.Scanner
	keep  refChoice
	to    *Session
	// begun is true after the capabilities.
	begun bool
	kept  int
	ready bytes.Buffer
}

// filterRefs returns a reader that reads exactly to the end of the list. Lines without a ref are recorded in
// s, which has the capabilities.
func filterRefs(r io.Reader, keep refChoice, s *Session) io.Reader {
	return &refFilter{lines: pktline.NewScanner(r), keep: keep, to: s}
}

// Read implements io.Reader. It reads lines until one is to be forwarded.
func (f *refFilter) Read(p []byte) (int, error) {
	for f.ready.Len() == 0 {
		f.ready.Reset()
		if !f.lines.Scan() {
			if err := f.lines.Err(); err != nil {
				return 0, err
			}
			return 0, io.EOF
		}
		if err := f.pass(f.lines.Bytes()); err != nil {
			return 0, err
		}
	}
	return f.ready.Read(p)
}

// pass forwards or drops one line of the list. An empty line is the flush packet, which is always
// forwarded.
func (f *refFilter) pass(line []byte) error {
	to := pktline.NewEncoder(&f.ready)
	if len(line) == 0 {
		return to.Flush()
	}
	hash, name, ok := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
	switch {
	case !f.begun && string(hash) == "version":
		return fault.New(fault.Unsupported, "the server answers in version %s of Git's protocol, for which it was not asked; a proxy may add the header Git-Protocol", fault.Plain(string(name)))
	case !f.begun:
	case string(hash) == "shallow":
		f.to.Shallow = true
		return nil
	case ok && (bytes.HasSuffix(name, []byte("^{}")) || !f.keep(string(name), f.to.Caps)):
		return nil // the tag itself leads to its target
	default:
		if f.kept++; f.kept > maxRefs {
			return fault.New(fault.Unsupported, "the server lists more than %d branches and tags", maxRefs)
		}
	}
	f.begun = f.begun || bytes.IndexByte(line, 0) >= 0
	return to.Encode(line)
}

// overhead bounds the data around a pack: acknowledgements, progress, and the framing of the pack.
type overhead struct{ left int64 }

var errOverhead = fault.New(fault.Unsupported, "the server talks without end instead of sending a pack")

// over returns a reader for r that is limited by the overhead.
func (t *overhead) over(r io.Reader) io.Reader { return capped{r, t} }

type capped struct {
	io.Reader
	overhead *overhead
}

func (r capped) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if r.overhead.left -= int64(n); r.overhead.left < 0 {
		return 0, errOverhead
	}
	return n, err
}

// arrival records received parts of a pack.
type arrival struct {
	io.Writer
	overhead *overhead
	deadline *Deadline
}

func (s *Session) arriving(ctx context.Context, w io.Writer) io.Writer {
	return arrival{w, &s.overhead, DeadlineOf(ctx)}
}

func (a arrival) Write(p []byte) (int, error) {
	// The allowed overhead grows with the pack, because a server may frame a few bytes at a time.
	a.overhead.left += 2 * int64(len(p))
	a.deadline.extend(len(p))
	return a.Writer.Write(p)
}
