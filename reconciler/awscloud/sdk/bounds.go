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

// The bounds of an endpoint's answers. Answers of AWS are far smaller. The bounds keep one endpoint from
// filling the memory of a daemon that serves others too.
const (
	longestAnswer = 8 << 20   // of one call, and of each error
	longestPage   = 32 << 20  // of calls that return machines or templates
	longestList   = 256 << 20 // of a list with all its pages
	mostPages     = 1000      // of a list
	mostNamed     = 5000      // names in a list where every name costs a call
	LongestText   = 64 << 10  // of one value: user data, the longest, has at most 22 KiB
	longestSaid   = 4 << 10   // of AWS's messages for people
	longestCode   = 128       // of an error's code and a request's id
)

// ErrBound is in the chain of a call's error if the answer was larger, longer or had more pages than weir
// accepts.
var ErrBound = errors.New("the answer exceeds a limit")

// boundError names the exceeded bound.
type boundError struct{ code, text string }

func (e *boundError) Error() string { return e.text }

func (e *boundError) Unwrap() error { return ErrBound }

// RetryableError returns false: the SDK must not send the same request again.
func (e *boundError) RetryableError() bool { return false }

// bigPages lists the operations with pages of up to longestPage.
var bigPages = map[string]bool{
	"DescribeAutoScalingGroups": true, "DescribeLaunchTemplates": true, "DescribeLaunchTemplateVersions": true,
	"DescribeInstances": true, "DescribeImages": true, "DescribeInstanceTypes": true,
}

// boundAnswers adds the bounds to the middleware stack of a client, including clients that only get
// credentials.
func boundAnswers(stack *middleware.Stack) error {
	if err := stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("weir:bound-body", boundBody), middleware.After); err != nil {
		return err
	}
	return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("weir:bound-texts", boundTexts), middleware.Before)
}

// boundBody is the middleware next to the network. It bounds the body of an answer.
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
	list  *int64 // remaining bytes for all pages of a list; nil without a list
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

// boundTexts checks the decoded answer: it shortens AWS's texts for people, and rejects any other value of
// that length, because weir must neither compare nor show it.
func boundTexts(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
	out, meta, err := next.HandleDeserialize(ctx, in)
	if err == nil && out.Result != nil {
		err = boundValue(reflect.ValueOf(out.Result), "")
	}
	return out, meta, err
}

// said lists the members of AWS's types that contain sentences or describe an error.
var said = map[string]bool{
	"Code": true, "ErrorCode": true, "Message": true, "ErrorMessage": true, "StatusReason": true, "StatusMessage": true, "Cause": true, "Description": true, "Details": true,
}

// boundValue returns an error if a text or a list of bytes in an answer of AWS is too long. It shortens
// sentences of people and errors instead. member is the field that contains the value.
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

// cut shortens a message of AWS. It cuts between words, because half a secret can be neither found nor
// masked.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	words := text[:max(strings.LastIndexAny(text[:most], " \t\r\n"), 0)]
	return strings.TrimSpace(words + " … (cut)")
}

// head returns the part of a text that is searched. Searching megabytes would cost more than the call.
func head(text string) string { return text[:min(len(text), LongestText)] }

// listKey is the context key of the remaining bytes for the pages of a list.
type listKey struct{}

// EachPage requests the pages of a list until the last one. Too many pages, or a repeated token, are an
// error. It classifies an error that page returns.
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

// TooMany fails if a list has too many names, because each name costs a call.
func TooMany(n int) error {
	if n <= mostNamed {
		return nil
	}
	return &boundError{"ListTooLong", fmt.Sprintf("the list has more than %d names", mostNamed)}
}

func endless(service, operation, text string) error {
	return Classify(service, operation, &boundError{"EndlessList", text})
}
