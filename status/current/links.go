package current

import (
	"cmp"
	"net/url"
	"strings"

	"github.com/weir-gitops/weir/status/forge"
)

// plainURL is a repository's address without user, password, query and fragment. A
// local path, or scp-like user@host:path, is not a URL and loses only a user part.
func plainURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme == "" {
		if at := strings.LastIndex(raw, "@"); at >= 0 && !strings.HasPrefix(raw, "/") && !strings.HasPrefix(raw, ".") {
			return raw[at+1:]
		}
		return raw
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// Links are the links of a source.
func (s Source) Links() forge.Links {
	return forge.NewLinks(cmp.Or(s.WebURL, s.URL), forge.Kind(s.Forge))
}
