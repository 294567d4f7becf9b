package wire

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/weir-gitops/weir/reconciler/awsemu/model"
)

// AsError returns err as an error answer. An error of another type than Error is a failure of the emulator
// itself.
func AsError(err error, d Dialect) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	if d.InternalFailed != nil {
		return d.InternalFailed()
	}
	return Fail("InternalFailure", "An internal failure has occurred")
}

// Status returns the HTTP status of a service error.
func (sv *Service) Status(e *Error) int {
	status := e.HTTPStatus()
	if sv.Flat && e.Status == 0 && status < http.StatusInternalServerError {
		return http.StatusBadRequest
	}
	return status
}

// AnswerBody returns the body of a successful answer.
func (rq *Exchange) AnswerBody(h http.Header) []byte {
	name := rq.Operation.Name + "Response"
	var w XML
	switch rq.Service.Protocol {
	case "json", "rest-json":
		h.Set("Content-Type", rq.Service.contentType())
		if rq.CBOR {
			raw, _ := rq.Reply.(json.RawMessage)
			return rq.inCBOR(h, rq.Operation.Model.Out, raw)
		}
		if rq.Service.Protocol == "json" && rq.Operation.Model.Output == "" {
			return nil // AWS sends an empty body
		}
		raw, _ := rq.Reply.(json.RawMessage)
		if len(raw) == 0 || string(raw) == "null" {
			raw = json.RawMessage("{}")
		}
		return raw
	case "ec2":
		w.Buf = make([]byte, 0, len(rq.XML.Buf)+512)
		w.Open(name + ` xmlns="` + rq.Service.namespace() + `"`)
		w.Text("requestId", rq.ID)
		w.Buf = append(w.Buf, rq.XML.Buf...)
	default:
		w.Buf = make([]byte, 0, len(rq.XML.Buf)+512)
		w.Open(name + ` xmlns="` + rq.Service.namespace() + `"`)
		if rq.Operation.Model.Wrapper != "" {
			w.Open(rq.Operation.Name + "Result")
			w.Buf = append(w.Buf, rq.XML.Buf...)
			w.Close(rq.Operation.Name + "Result")
		}
		w.Open("ResponseMetadata")
		w.Text("RequestId", rq.ID)
		w.Close("ResponseMetadata")
	}
	w.Close(name)
	h.Set("Content-Type", rq.Service.contentType())
	return w.Buf
}

// ErrorBody returns the body of an error answer in the service's format.
func (rq *Exchange) ErrorBody(h http.Header, e *Error) []byte {
	h.Set("Content-Type", rq.Service.contentType())
	var w XML
	switch rq.Service.Protocol {
	case "json", "rest-json":
		kind := e.Code
		if rq.Service.ErrorType != nil {
			kind = rq.Service.ErrorType(e.Code)
		} else {
			h.Set("X-Amzn-Errortype", e.Code)
		}
		members := map[string]any{"__type": kind, "message": e.Message}
		for name, value := range e.Extra {
			members[name] = value
		}
		if rq.Service.Codes {
			side := "Sender"
			if e.HTTPStatus() >= http.StatusInternalServerError {
				side = "Receiver"
			}
			h.Set("X-Amzn-Query-Error", e.Code+";"+side)
		}
		body, err := json.Marshal(members)
		if err != nil {
			return []byte(`{"__type":"ServerException"}`)
		}
		if rq.CBOR {
			return rq.inCBOR(h, nil, body)
		}
		return body
	case "ec2":
		w.Open("Response")
		w.Open("Errors")
		w.Open("Error")
		w.Text("Code", e.Code)
		w.Text("Message", e.Message)
		w.Close("Error")
		w.Close("Errors")
		w.Text("RequestID", rq.ID)
		w.Close("Response")
	default:
		kind := "Sender"
		if e.HTTPStatus() >= http.StatusInternalServerError {
			kind = "Receiver"
		}
		w.Open("ErrorResponse")
		w.Open("Error")
		w.Text("Type", kind)
		w.Text("Code", e.Code)
		w.Text("Message", e.Message)
		w.Close("Error")
		w.Text("RequestId", rq.ID)
		w.Close("ErrorResponse")
	}
	return w.Buf
}

// inCBOR converts a JSON protocol body to RPC v2 with CBOR.
func (rq *Exchange) inCBOR(h http.Header, s *model.Shape, body []byte) []byte {
	h.Set("Smithy-Protocol", "rpc-v2-cbor")
	h.Set("Content-Type", "application/cbor")
	if len(body) == 0 || string(body) == "null" {
		body = []byte("{}")
	}
	out, err := model.CBOROfJSON(s, body)
	if err != nil {
		return nil // encoding/json wrote the body
	}
	return out
}

// contentType returns the content type of the service's answers.
func (sv *Service) contentType() string {
	switch sv.Protocol {
	case "ec2":
		return "text/xml;charset=UTF-8"
	case "json":
		return "application/x-amz-json-" + sv.JSON
	case "rest-json":
		return "application/json"
	}
	return "text/xml"
}

// namespace returns the namespace of the service's XML. It always ends in a slash, even if the model's does
// not.
func (sv *Service) namespace() string { return strings.TrimSuffix(sv.Namespace, "/") + "/" }
