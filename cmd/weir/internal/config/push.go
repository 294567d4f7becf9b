package config

import (
	"cmp"
	"net/mail"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/targetspec"
)

// The purposes for which weir may push.
const (
	// Revert proposes the revert of a change that a FleetRollout stopped.
	Revert = "revert"
	// Images proposes to pin newer images.
	Images = "images"
	// Accept proposes to keep a change that somebody made in AWS.
	Accept = "accept"
)

// purposes lists all purposes for which weir may push.
var purposes = []string{Revert, Images, Accept}

// ImageUpdates configures how often weir proposes newer images.
type ImageUpdates struct {
	// Every is the time between checks for newer images in AWS, and the minimum time between two
	// updates of a pull request. Without it weir proposes no images.
	Every time.Duration `yaml:"every"`
}

// defaultAuthor is the default author of weir's commits.
const defaultAuthor = "weir <weir@localhost>"

// Push defines the purposes for which weir pushes its own branches, and the token for these pushes.
type Push struct {
	// TokenFile holds a token that may push branches and open pull requests. weir uses it for
	// nothing else, and pushes with no other token. weir reads it for each use.
	TokenFile string `yaml:"tokenFile"`
	// For lists what weir may propose: revert reverts a change that a FleetRollout stopped, images
	// pins newer images as imageUpdates of the source requires, and accept keeps a change made in
	// AWS when a user requests it.
	For []string `yaml:"for"`
	// Author is the author of weir's commits.
	Author string `yaml:"author"`
}

func (p *Push) setDefaults(base string) {
	if p.Enabled() {
		p.Author = cmp.Or(p.Author, defaultAuthor)
	}
	targetspec.Absolute(base, &p.TokenFile)
}

// Enabled reports whether weir may push anything.
func (p Push) Enabled() bool { return len(p.For) > 0 }

// By returns the name and the address of the author of weir's commits.
func (p Push) By() (name, address string) {
	by, err := mail.ParseAddress(p.Author)
	if err != nil {
		return "weir", "weir@localhost" // the configuration was not validated
	}
	return by.Name, by.Address
}

// Reverts reports whether weir may propose reverts of the source's changes.
func (f Forge) Reverts() bool { return slices.Contains(f.Push.For, Revert) }

// Accepts reports whether users may request pull requests that keep changes made in AWS.
func (f Forge) Accepts() bool { return slices.Contains(f.Push.For, Accept) }

// Proposes reports whether weir proposes newer images of the forge's source, and how often.
func (c *Config) Proposes(f Forge) (every time.Duration, is bool) {
	s := c.sourceOf(f.Source)
	if s == nil || !slices.Contains(f.Push.For, Images) {
		return 0, false
	}
	return s.ImageUpdates.Every, s.ImageUpdates.Every > 0
}

// leastEvery is the minimum time between two checks for newer images, because AWS's answers are cached for
// that long.
const leastEvery = 10 * time.Minute

func checkEvery(text string) (wrong, help string) {
	if d, err := time.ParseDuration(text); err == nil && d != 0 && d < leastEvery {
		return "it is less than 10m", "24h is a good value: AWS publishes images every week or so"
	}
	return "", ""
}

// imageUpdates checks that everything that image updates require is configured.
func (v *validator) imageUpdates(at string, s *Source) {
	switch {
	case !v.found.written(at):
	case s.ImageUpdates.Every == 0:
		v.found.fault(at+".every", "missing-key", "write every: 24h", "how often newer images are proposed is required")
	case !slices.ContainsFunc(v.config.Forges, func(f Forge) bool { return f.Source == s.Name && slices.Contains(f.Push.For, Images) }):
		v.found.fault(at, "bad-value", "add push: {tokenFile: FILE, for: ["+Images+"]} to the entry of forges for this source", "weir has no permission to push newer images to the source %q", s.Name)
	}
}

// push validates the section of a forge that lets weir push branches for pull requests.
func (v *validator) push(at string, f *Forge) {
	if !v.found.written(at) {
		return
	}
	switch {
	case f.Profile().WebhooksOnly:
		v.found.fault(at, "bad-value", "name the forge's own type", "a generic forge has no pull requests")
		return
	case len(f.Push.For) == 0:
		v.found.fault(at+".for", "missing-key", "write for: ["+strings.Join(purposes, ", ")+"], or one of them", "what may be pushed is required")
	}
	switch s := v.config.sourceOf(f.Source); {
	case f.Push.TokenFile == "":
		v.found.fault(at+".tokenFile", "missing-key", "weir uses only this token to push, and no GitHub App: the token that reads pull requests should not be able to write", "a file with a token that may push is required")
	case f.Push.TokenFile == f.TokenFile, s != nil && f.Push.TokenFile == s.Auth.TokenFile:
		v.found.fault(at+".tokenFile", "bad-value", "create a second token, so that weir reads and writes statuses with a token that cannot push", "the file is already used for another token")
	case s != nil && !branches(s.Ref):
		v.found.fault(at, "bad-value", "pull requests go into branches: follow a branch", "the source %q does not follow a branch", f.Source)
	}
	if u := webAddress(f.URL); u != nil && u.Scheme != "https" && !loopback(u) {
		v.found.fault(at, "bad-value", "use https for the forge's url", "a token that may push would be sent in plain text")
	}
}

// loopback reports whether an address is on this machine.
func loopback(u *url.URL) bool {
	host := u.Hostname()
	return host == "localhost" || strings.HasPrefix(host, "127.") || host == "::1"
}

// checkAuthor accepts a name with an address.
func checkAuthor(text string) (wrong, help string) {
	if by, err := mail.ParseAddress(text); err != nil || by.Name == "" || strings.ContainsAny(by.Name+by.Address, "<>\n\r\x00") {
		return "it is not a name with an address", "write it like " + defaultAuthor
	}
	return "", ""
}

// PushFiles returns the files with tokens that may push.
func (c *Config) PushFiles() []string {
	var out []string
	for _, f := range c.Forges {
		out = append(out, f.Push.TokenFile)
	}
	return present(out...)
}
