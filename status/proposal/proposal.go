// Package proposal is what all pull requests of weir's own have in common: how long weir waits
// after a write that failed, and how texts of others stand in theirs.
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
	// denied is how long weir waits after it was told that it may not.
	denied = 10 * time.Minute
	// hurdle is how long it waits after what may pass by itself, missing times the tries so
	// far after what the forge does not know yet: it processes a push for a second or two.
	hurdle  = 30 * time.Second
	missing = 2 * time.Second
	// patience is how often what a forge refuses is tried before it is said.
	patience = 3
)

// Wait is how long to wait after an error, which is that of a try, counted from 1. mayNot says
// that the forge does not let weir do it, and that somebody should know.
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

// Evidence is how many pools, paths and commits a text lists.
const Evidence = 50

// Words puts texts of others into texts of weir's, without what Redact hides.
type Words struct{ Redact func(string) string }

// Line is one line without secrets and without hidden characters.
func (w Words) Line(said string) string { return visible.Line(w.Redact(said)) }

// Code is a text in Markdown that stands for nothing but itself.
func (w Words) Code(said string) string { return wording.Code(visible.Clip(w.Line(said), 500)) }

// Status is a text for a status of at most limit bytes.
func (w Words) Status(said string, limit int) string { return visible.Clip(w.Line(said), limit) }

// List names paths, one a line.
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

// Number is how people name a pull request.
func Number(n int64) string { return "#" + strconv.FormatInt(n, 10) }

// Page is the line with which a text ends that has weir's page; empty without one.
func Page(url string) string {
	if url == "" {
		return ""
	}
	return "\n[weir's page](" + strings.TrimSuffix(url, "/") + "/)\n"
}
