// Package proposal opens, updates and closes the pull requests that weir itself proposes.
//
// Machine does the work, and a Kind says what to propose and how to describe it: see the packages
// reverts, images and accepts below this one. A new kind is one type with the methods of Kind, and a
// test that runs proposaltest.Contract on it.
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
	// hurdle is the wait after an error that may pass by itself.
	hurdle = 30 * time.Second
	// missing, times the number of tries, is the wait if the forge does not know the branch yet: it
	// processes a push for a second or two.
	missing = 2 * time.Second
	// patience is the number of tries before a refusal is reported.
	patience = 3
)

// Wait returns the time until the next try after an error. tries counts the tries so far, from 1.
// mayNot says that the forge does not let weir do it, which somebody should know.
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

// Evidence is the largest number of pools, paths or commits that a text lists.
const Evidence = 50

// Words puts texts of others into weir's own, and applies Redact to them.
type Words struct{ Redact func(string) string }

// Line returns a text as one line, without secrets and hidden characters.
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

// Number returns the name of a pull request, such as #12.
func Number(n int64) string { return "#" + strconv.FormatInt(n, 10) }

// Page returns the last line of a text, a link to weir's page; empty without an address.
func Page(url string) string {
	if url == "" {
		return ""
	}
	return "\n[weir's page](" + strings.TrimSuffix(url, "/") + "/)\n"
}
