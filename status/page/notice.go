package page

import (
	"bytes"
	"net/http"
	"strings"

	"github.com/weir-gitops/weir/render/visible"
)

// SignIn is the page that takes a token.
type SignIn struct {
	// Back is the address of the next page, below weir's own address.
	Back string
	// Form proves that the form is from weir's own page.
	Form string
	// Problem is the reason why the last try failed; empty for the first.
	Problem string
	// Name is the name of the user if one is already logged in.
	Name string
}

// Notice is a page with a short text: why something was not done.
type Notice struct {
	Headline, Text string
	// Back is the address of the next page, below weir's own address; the fleet's page if it is
	// not.
	Back string
}

// Notices writes pages for people who may not see the other pages yet. They look alike and show
// nothing of the fleet.
type Notices struct{ web *web }

// NewNotices reads what the pages are made of. Their style sheet is at the same
// address as with the page's Handler.
func NewNotices() *Notices {
	w := &web{assets: map[string]asset{}}
	w.load()
	return &Notices{web: w}
}

// SignIn writes the page that takes a token.
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
		panic("status: " + name + " cannot be rendered: " + err.Error()) // it holds texts only
	}
	rw.Header().Set("Content-Type", "text/html; charset=utf-8")
	rw.WriteHeader(code)
	_, _ = rw.Write([]byte(visible.HTML(page.String()))) // the reader is gone
}

// Secured sets the headers that keep an answer from being framed, sniffed, kept, or
// made to load or run anything that is not ours.
func Secured(next http.Handler) http.Handler { return secured(next) }
