package sdk

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// The bounds of an endpoint's answers. No answer of AWS comes close to them. They keep one endpoint
// from filling the memory of a daemon that looks after others too.
const (
	longestAnswer = 8 << 20   // of one call, and of each failure
	longestPage   = 32 << 20  // of those calls that answer with machines or templates
	longestList   = 256 << 20 // of a list with all its pages
	mostPages     = 1000      // of a list
	mostNamed     = 5000      // names in a list where every name costs a call
	LongestText   = 64 << 10  // of one value: user data, the longest, has 22 KiB
	longestSaid   = 4 << 10   // of what AWS says to people
	longestCode   = 128       // of an error's code and a request's id
)

// ErrBound is in the chain of a call's error where the answer was larger, longer
// or had more pages than weir takes.
var ErrBound = errors.New("the answer exceeds a limit")

// boundError names the bound.
type boundError struct{ code, text string }

func (e *boundError) Error() string { return e.text }

func (e *boundError) Unwrap() error { return ErrBound }

// RetryableError returns false: the SDK must not send the same request again.
func (e *boundError) RetryableError() bool { return false }

// bigPages are the operations whose pages have longestPage.
var bigPages = map[string]bool{
	"DescribeAutoScalingGroups": true, "DescribeLaunchTemplates": true, "DescribeLaunchTemplateVersions": true,
	"DescribeInstances": true, "DescribeImages": true, "DescribeInstanceTypes": true,
}

// boundAnswers is for the stack of every client, those that only get credentials
// included.
func boundAnswers(stack *middleware.Stack) error {
	if err := stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("weir:bound-body", boundBody), middleware.After); err != nil {
		return err
	}
	return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("weir:bound-texts", boundTexts), middleware.Before)
}

// boundBody is next to the network.
func boundBody(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
	out, meta, err := next.HandleDeserialize(ctx, in)
	response, ok := out.RawResponse.(*smithyhttp.Response)
	if !ok || response.Response == nil || response.Body == nil || response.Body == http.NoBody {
		return out, meta, err
	}
	body := &boundedBody{ReadCloser: response.Body, limit: longestAnswer}
	if _, operation := names(ctx); bigPages[operation] && response.StatusCode == http.StatusOK {
		body.limit = longestPage
	}
	body.left = int64(body.limit)
	body.list, _ = ctx.Value(listKey{}).(*int64)
	response.Body = body
	return out, meta, err
}

// boundedBody fails if a body continues after its bound.
type boundedBody struct {
	io.ReadCloser
	limit int
	left  int64
	list  *int64 // what is left for all pages of a list; nil where it is not a list
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	if b.left < 0 {
		return 0, &boundError{"AnswerTooLarge", "the answer has more than " + mebibytes(b.limit)}
	}
	if b.list != nil {
		if *b.list -= int64(n); *b.list < 0 {
			return 0, &boundError{"ListTooLarge", "the pages of the answer have more than " + mebibytes(longestList) + " together"}
		}
	}
	return n, err
}

func mebibytes(n int) string { return strconv.Itoa(n>>20) + " MiB" }

// boundTexts checks the decoded answer: it cuts AWS's texts for people, and refuses any other value
// of that length, because weir must neither compare nor show it.
func boundTexts(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
	out, meta, err := next.HandleDeserialize(ctx, in)
	if err == nil && out.Result != nil {
		err = boundValue(reflect.ValueOf(out.Result), "")
	}
	return out, meta, err
}

// said are the members of AWS's shapes that hold sentences, and what failed.
var said = map[string]bool{
	"Code": true, "ErrorCode": true, "Message": true, "ErrorMessage": true, "StatusReason": true, "StatusMessage": true, "Cause": true, "Description": true, "Details": true,
}

func boundValue(v reflect.Value, member string) error {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		return boundValue(v.Elem(), member)
	case reflect.Struct:
		for i, n := 0, v.NumField(); i < n; i++ {
			if f := v.Type().Field(i); f.IsExported() && f.Name != "ResultMetadata" {
				if err := boundValue(v.Field(i), f.Name); err != nil {
					return err
				}
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return TooLong(v.Len(), member)
		}
		for i := range v.Len() {
			if err := boundValue(v.Index(i), member); err != nil {
				return err
			}
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if err := errors.Join(boundValue(it.Key(), member), boundValue(it.Value(), member)); err != nil {
				return err
			}
		}
	case reflect.String:
		if said[member] && v.CanSet() {
			v.SetString(cut(v.String(), longestSaid))
			return nil
		}
		return TooLong(v.Len(), member)
	default: // numbers, moments and the like
	}
	return nil
}

func TooLong(length int, member string) error {
	if length <= LongestText {
		return nil
	}
	return &boundError{"TextTooLong", fmt.Sprintf("%s has %d bytes, more than %d", member, length, LongestText)}
}

// cut shortens what AWS says. It ends before a word and not inside one, as half a
// secret can be neither found nor masked.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	words := text[:max(strings.LastIndexAny(text[:most], " \t\r\n"), 0)]
	return strings.TrimSpace(words + " … (cut)")
}

// head is as much of a text as is looked into: a search through megabytes would
// cost more than the call.
func head(text string) string { return text[:min(len(text), LongestText)] }

// listKey holds how many bytes the pages of a list may still have.
type listKey struct{}

// EachPage requests the pages of a list until the last one. A list without an end, or with a
// repeated token, is an error. It classifies an error that page returns.
func EachPage(ctx context.Context, service, operation string, page func(ctx context.Context, token *string) (next *string, err error)) error {
	left := int64(longestList)
	ctx = context.WithValue(ctx, listKey{}, &left)
	seen := map[[sha256.Size]byte]bool{}
	var token *string
	for n := 1; ; n++ {
		next, err := page(ctx, token)
		if err != nil {
			return Classify(service, operation, err)
		}
		if aws.ToString(next) == "" {
			return nil
		}
		mark := sha256.Sum256([]byte(*next))
		switch {
		case seen[mark]:
			return endless(service, operation, fmt.Sprintf("after %d pages the list starts again: AWS returned the same token before", n))
		case n >= mostPages:
			return endless(service, operation, fmt.Sprintf("the list continues after %d pages", n))
		}
		seen[mark], token = true, next
	}
}

// TooMany fails for a list with too many names, as each name costs a call.
func TooMany(n int) error {
	if n <= mostNamed {
		return nil
	}
	return &boundError{"ListTooLong", fmt.Sprintf("the list has more than %d names", mostNamed)}
}

func endless(service, operation, text string) error {
	return Classify(service, operation, &boundError{"EndlessList", text})
}
