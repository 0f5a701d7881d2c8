package web

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// authenticator accepts only requests that have the token, also on the loopback
// address, because all users of the machine can connect to it.
type authenticator struct {
	token  string // token that requests need; empty if the file mode of the unix socket controls access instead
	public *url.URL
	port   string // port that the server listens on; empty for a unix socket
	local  bool   // whether the server listens on a loopback address only
}

// isOwnHost reports whether the Host header of a request names this server.
// Without this check another site could make its own name resolve to this
// server's address, and its scripts could read all pages (DNS rebinding).
func (a *authenticator) isOwnHost(req *http.Request) bool {
	if a.public != nil && strings.EqualFold(req.Host, a.public.Host) {
		return true
	}

	host, port, err := net.SplitHostPort(req.Host)
	if err != nil {
		host, port = strings.Trim(req.Host, "[]"), "80"
	}

	// Clients of a unix socket, such as curl --unix-socket, send the host
	// localhost. A proxy sends that of --public-url, which was accepted above.
	if a.port == "" {
		return host == "localhost"
	}
	if port != a.port {
		return false
	}
	if strings.EqualFold(host, "localhost") {
		return a.local
	}

	to, _ := req.Context().Value(http.LocalAddrContextKey).(net.Addr)
	address, ok := to.(*net.TCPAddr)
	ip := net.ParseIP(host)
	return ok && ip != nil && ip.Equal(address.IP)
}

// authorize reports whether a request is authorized. If the request is not
// authorized, authorize sends the response.
func (h *handler) authorize(w http.ResponseWriter, req *http.Request) bool {
	if needsNoToken(req.URL.Path) {
		return true
	}

	if a := h.o.auth; a != nil {
		if a.hasToken(req) || req.URL.Path == "/login" || strings.HasPrefix(req.URL.Path, "/static/") {
			return true
		}

		w.Header().Set("WWW-Authenticate", `Bearer realm="runner"`)
		if isAPI(req) {
			h.writeError(w, req, http.StatusUnauthorized, "the request has no valid token")
			return false
		}

		h.loginPage(w, req, http.StatusUnauthorized, "")
		return false
	}

	switch {
	case h.o.Authorize == nil:
		h.deny(w, req, "access denied, because web.Options.Authorize is not set")
		return false
	case h.o.Authorize(req) != nil:
		h.deny(w, req, "access denied")
		return false
	}

	return true
}

// deny responds with 403 to a client that may not see the pages: with JSON for
// the API, and plain text otherwise.
func (h *handler) deny(w http.ResponseWriter, req *http.Request, text string) {
	if isAPI(req) {
		h.writeError(w, req, http.StatusForbidden, text)
		return
	}
	http.Error(w, "403: "+text, http.StatusForbidden)
}

// needsNoToken reports whether a path is public. Public paths reveal nothing
// about tasks.
func needsNoToken(path string) bool { return path == "/healthz" || path == "/readyz" }

// cookieName returns the name of the cookie, which depends on the token.
// Browsers share cookies between all ports of a host, so two servers on one
// host need different names.
func (a *authenticator) cookieName() string {
	sum := sha256.Sum256([]byte("name of the cookie for " + a.token))
	return "runner-" + hex.EncodeToString(sum[:4])
}

// cookieValue returns a value that proves knowledge of the token and does not
// contain it.
func (a *authenticator) cookieValue() string {
	mac := hmac.New(sha256.New, []byte(a.token))
	io.WriteString(mac, "cookie")
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// hasToken reports whether a request has the token, or the cookie that login
// sets.
func (a *authenticator) hasToken(req *http.Request) bool {
	if a.token == "" {
		return true
	}
	if bearer, ok := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer "); ok {
		return isEqual(bearer, a.token)
	}
	cookie, err := req.Cookie(a.cookieName())
	return err == nil && isEqual(cookie.Value, a.cookieValue())
}

// isEqual compares two strings in constant time.
func isEqual(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// isSecure reports whether the browser uses TLS, to this server or to a proxy
// in front of it.
func (a *authenticator) isSecure(req *http.Request) bool {
	return req.TLS != nil || a.public != nil && a.public.Scheme == "https"
}

// sessionLength is the time that a browser stays signed in.
const sessionLength = 30 * 24 * time.Hour

// login sets the cookie if the form contains the token.
func (h *handler) login(w http.ResponseWriter, req *http.Request) {
	if !isEqual(strings.TrimSpace(req.PostFormValue("token")), h.o.auth.token) {
		h.loginPage(w, req, http.StatusUnauthorized, "The token is wrong.")
		return
	}

	a := h.o.auth
	http.SetCookie(w, &http.Cookie{
		Name:     a.cookieName(),
		Value:    a.cookieValue(),
		Path:     h.base + "/",
		MaxAge:   int(sessionLength / time.Second),
		HttpOnly: true,
		SameSite: http.SameSiteStrictMode,
		Secure:   a.isSecure(req),
	})
	http.Redirect(w, req, h.localPath(req.PostFormValue("next")), http.StatusSeeOther)
}

// localPath returns a place if it is the URL of a page of this server, or else
// the URL of the overview.
func (h *handler) localPath(place string) string {
	u, err := url.Parse(place)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || strings.ContainsAny(place, "\\\r\n\t") ||
		strings.HasPrefix(place, "//") ||
		!strings.HasPrefix(u.Path, h.base+"/") || strings.HasPrefix(u.Path, h.base+"/login") {
		return h.base + "/"
	}
	return (&url.URL{Path: u.Path, RawQuery: u.RawQuery}).String()
}

type loginView struct {
	page
	Error, Next string
}

func (h *handler) loginPage(w http.ResponseWriter, req *http.Request, status int, wrong string) {
	next := h.base + req.URL.RequestURI()
	if req.URL.Path == "/login" {
		next = req.FormValue("next")
	} else if req.Method == http.MethodPost {
		next = req.FormValue("back")
	}

	v := &loginView{page: h.newPage(req, "Sign in"), Error: wrong, Next: h.localPath(next)}
	h.render(w, req, status, "login", v)
}
