package report

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/weir-gitops/weir/render/lazyregexp"
)

var hostname = lazyregexp.New(`^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(:[0-9]+)?$`)

// SafeURL returns a web address that cannot end a link in Markdown or HTML, and "" for any other text.
func SafeURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || !hostname.MatchString(u.Host) {
		return ""
	}
	var b strings.Builder
	b.WriteString(u.Scheme + "://" + u.Host)
	for _, c := range []byte(strings.TrimPrefix(u.String(), u.Scheme+"://"+u.Host)) {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~:/?#@$&+,;=%", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
