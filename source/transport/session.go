package transport

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"

	"github.com/weir-gitops/weir/source/fault"
)

// Remote is a repository that is reached over the network.
type Remote interface {
	// Connect asks the server for its refs. It returns those that keep names to a server with such
	// capabilities, HEAD, and maybe one more. The caller must close the session.
	Connect(ctx context.Context, keep refChoice) (*Session, error)
	// Close releases connections that are kept between two sessions.
	Close()
}

func New(loc Location, cfg Settings) (Remote, error) {
	if loc.ssh != nil {
		return newSSHRemote(loc, cfg)
	}
	return newHTTPRemote(loc, cfg)
}

// refChoice reports whether a ref, by its full name, is of interest.
type refChoice func(name string, caps Capabilities) bool

// Session is one exchange with the server: its refs, then at most one pack.
type Session struct {
	// Host is the repository's address as it may be shown.
	Host string
	Adv  *packp.AdvRefs
	// Caps lists the server's capabilities as it reported them: go-git's own list leaves some out.
	Caps Capabilities
	// Shallow says that the server holds only a part of the history.
	Shallow  bool
	up       uploader
	overhead overhead
}

// uploader requests packs.
type uploader interface {
	UploadPack(context.Context, *packp.UploadPackRequest) (*packp.UploadPackResponse, error)
	// explain adds the reason to an error of UploadPack, or of reading its result. The context is
	// that of the operation with its deadline.
	explain(ctx context.Context, err error) error
	close()
}

func (s *Session) Close() { s.up.close() }

// Capabilities lists what a server reports about itself next to its first ref.
type Capabilities []string

// Value gives what follows prefix in the first capability with that prefix.
func (c Capabilities) Value(prefix string) string {
	for _, have := range c {
		if v, ok := strings.CutPrefix(have, prefix); ok {
			return v
		}
	}
	return ""
}

func (c Capabilities) Has(name string) bool {
	for _, have := range c {
		if have == name {
			return true
		}
	}
	return false
}

// checkFormat refuses object names that go-git cannot read.
func (c Capabilities) checkFormat() error {
	if format := c.Value("object-format="); format != "" && format != "sha1" {
		return fault.New(fault.Unsupported, "the repository uses the object format %s; only sha1 is carried", fault.Plain(format))
	}
	return nil
}

// Pack requests wants and writes the pack to w.
func (s *Session) Pack(ctx context.Context, wants, haves []plumbing.Hash, w io.Writer) (err error) {
	req := packp.NewUploadPackRequestFromCapabilities(s.Adv.Capabilities)
	// go-git's filter drops these two, and Azure DevOps and CodeCommit send
	// nothing without one of them.
	for _, c := range []capability.Capability{capability.MultiACKDetailed, capability.MultiACK} {
		if s.Caps.Has(c.String()) {
			if err := req.Capabilities.Set(c); err != nil {
				return fmt.Errorf("ask for a pack: %w", err)
			}
			break
		}
	}
	req.Wants, req.Haves = wants, haves
	resp, err := s.up.UploadPack(ctx, req)
	if s.overhead.left < 0 {
		err = errOverhead // go-git passes on only text here.
	}
	if err != nil {
		return s.up.explain(ctx, err)
	}
	defer func() { _ = resp.Close() }() // All that matters was read.
	_, err = io.Copy(s.arriving(ctx, w), demux(req.Capabilities, resp))
	if err == nil {
		err = ctx.Err() // A connection that was given up ends like a closed one.
	}
	if err != nil {
		return s.up.explain(ctx, err)
	}
	return nil
}

func demux(caps *capability.List, r io.Reader) io.Reader {
	switch {
	case caps.Supports(capability.Sideband64k):
		return sideband.NewDemuxer(sideband.Sideband64k, r)
	case caps.Supports(capability.Sideband):
		return sideband.NewDemuxer(sideband.Sideband, r)
	default:
		return r
	}
}

// GivesHidden reports whether the server gives commits whose refs it does not list.
func (s *Session) GivesHidden() bool {
	for _, c := range []string{"allow-tip-sha1-in-want", "allow-reachable-sha1-in-want", "allow-any-sha1-in-want"} {
		if s.Caps.Has(c) {
			return true
		}
	}
	return false
}
