package page

import (
	"bytes"
	"net/http"
	"strings"

	"github.com/weir-gitops/weir/render/visible"
)

// SignIn is the data of the login page.
type SignIn struct {
	// Back is the address of the next page, below weir's own address.
	Back string
	// Form proves that the form is from weir's own page.
	Form string
	// Problem is the reason why the last attempt failed; empty at the first attempt.
	Problem string
	// Name is the name of the user who is already logged in, if any.
	Name string
}

// Notice is the data of a page with a short text, such as the reason why a request was refused.
type Notice struct {
	Headline, Text string
	// Back is the path of the next page, below weir's own address. The default is the fleet's page.
	Back string
}

// Notices writes pages for users who must not see the other pages. They have the same style, and show
// nothing of the fleet.
type Notices struct{ web *web }

// NewNotices parses the templates. The style sheet has the same address as the one of the page's Handler.
func NewNotices() *Notices {
	w := &web{assets: map[string]asset{}}
	w.load()
	return &Notices{web: w}
}

// SignIn writes the login page.
func (n *Notices) SignIn(rw http.ResponseWriter, code int, v SignIn) { n.write(rw, code, "signin", v) }

// Notice writes a page with a short text.
func (n *Notices) Notice(rw http.ResponseWriter, code int, v Notice) {
	if !strings.HasPrefix(v.Back, "/") || strings.HasPrefix(v.Back, "//") {
		v.Back = "/"
	}
	n.write(rw, code, "notice", v)
}

func (n *Notices) write(rw http.ResponseWriter, code int, name string, v any) {
	var page bytes.Buffer
	if err := n.web.pages.ExecuteTemplate(&page, name, v); err != nil {
		panic("status: " + name + " cannot be rendered: " + err.Error()) // it contains only strings
	}
	rw.Header().Set("Content-Type", "text/html; charset=utf-8")
	rw.WriteHeader(code)
	_, _ = rw.Write([]byte(visible.HTML(page.String()))) // ignore a disconnected reader
}

// Secured sets headers that forbid framing, content sniffing, caching, and loading or running anything that
// is not weir's own.
func Secured(next http.Handler) http.Handler { return secured(next) }
