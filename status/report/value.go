package report

import (
	"encoding/json"
	"fmt"

	"github.com/weir-gitops/weir/status/wording"
)

// LongestValue bounds a value on the page that holds no ARN, in characters.
const LongestValue = 400

// Value prints a JSON value as a person reads it; empty stands for absent.
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
