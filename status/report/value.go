package report

import (
	"encoding/json"
	"fmt"

	"github.com/weir-gitops/weir/status/wording"
)

// LongestValue is the maximum length in characters of a value on the page. Values with an ARN may be
// longer.
const LongestValue = 400

// Value formats a JSON value for a reader. The result is empty for an absent value.
func Value(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		if v == "" {
			return `""`
		}
		return wording.Shorten(v, LongestValue)
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return wording.Shorten(fmt.Sprint(v), LongestValue)
	}
	return wording.Shorten(string(raw), LongestValue)
}
