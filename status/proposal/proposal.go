// Package proposal opens, updates and closes the pull requests that weir itself proposes.
//
// Machine does the work. A Kind determines the content and the description of a proposal; see the packages
// reverts, images and accepts below this one. A new kind is a type that implements Kind, with a test that
// runs proposaltest.Contract on it.
package proposal

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/weir-gitops/weir/render/visible"
	"github.com/weir-gitops/weir/source/fault"
	"github.com/weir-gitops/weir/source/transport"
	"github.com/weir-gitops/weir/status/forge/forgehttp"
	"github.com/weir-gitops/weir/status/wording"
)

const (
	// denied is the wait after the forge refused permission.
	denied = 10 * time.Minute
	// hurdle is the wait after an error that may be temporary.
	hurdle = 30 * time.Second
	// missing, multiplied by the number of attempts, is the wait if the forge does not know the branch yet,
	// because it processes a push for a second or two.
	missing = 2 * time.Second
	// patience is the number of attempts before a refusal is reported.
	patience = 3
)

// Wait returns the time until the next attempt after an error. tries is the number of attempts so far.
// mayNot says that the forge does not permit the action, which must be reported.
func Wait(err error, tries int) (wait time.Duration, mayNot bool) {
	wait = hurdle
	var refusal *forgehttp.Error
	var refused *transport.RefusedError
	mayNot = errors.As(err, &refused) || fault.ReasonOf(err) == fault.AuthFailed
	if errors.As(err, &refusal) {
		// A forge may not know a branch yet that was pushed a moment ago.
		mayNot = refusal.Fault == forgehttp.FaultDenied || refusal.Fault == forgehttp.FaultRefused && tries >= patience
		if refusal.Status == http.StatusNotFound && !mayNot && tries <= patience {
			wait = missing * time.Duration(max(tries, 1))
		}
		wait = max(wait, refusal.After)
	}
	if mayNot {
		wait = denied
	}
	return wait, mayNot
}

// Evidence is the maximum number of pools, paths or commits in a text.
const Evidence = 50

// Words inserts text from outside into weir's texts, and applies Redact to it.
type Words struct{ Redact func(string) string }

// Line returns a text on one line, without secrets and hidden characters.
func (w Words) Line(said string) string { return visible.Line(w.Redact(said)) }

// Code returns a text as a code span of Markdown.
func (w Words) Code(said string) string { return wording.Code(visible.Clip(w.Line(said), 500)) }

// Status returns a text for a commit status of at most limit bytes.
func (w Words) Status(said string, limit int) string { return visible.Clip(w.Line(said), limit) }

// List returns a Markdown list of paths.
func (w Words) List(paths []string) string {
	var b strings.Builder
	for i, p := range paths {
		if i == Evidence {
			fmt.Fprintf(&b, "- and %d more\n", len(paths)-i)
			break
		}
		fmt.Fprintf(&b, "- %s\n", w.Code(p))
	}
	return b.String()
}

// Number formats the number of a pull request, such as #12.
func Number(n int64) string { return "#" + strconv.FormatInt(n, 10) }

// Page returns the last line of a text, a link to weir's page. It is empty without an address.
func Page(url string) string {
	if url == "" {
		return ""
	}
	return "\n[weir's page](" + strings.TrimSuffix(url, "/") + "/)\n"
}
