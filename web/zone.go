package web

import (
	"net/http"
	"strings"
	"time"
)

// Each browser chooses the time zone of its pages. A cookie keeps the name of the zone. Without the cookie, times are in the zone of the
// server.

const (
	zoneCookie = "runner-zone"
	serverZone = "server" // name of the zone of the server
	utcZone    = "UTC"
)

// zone returns the time zone that the browser of a request has chosen.
func zone(req *http.Request) *time.Location {
	cookie, err := req.Cookie(zoneCookie)
	if err != nil {
		return time.Local
	}
	if chosen, err := loadZone(cookie.Value); err == nil {
		return chosen
	}
	return time.Local
}

func loadZone(name string) (*time.Location, error) {
	if name == serverZone || name == "" {
		return time.Local, nil
	}
	return time.LoadLocation(name)
}

// chooseZone handles the form for the time zone, which is at the end of each page. It stores the chosen zone and redirects to the page of
// the form.
func (h *handler) chooseZone(w http.ResponseWriter, req *http.Request) {
	name := strings.TrimSpace(req.FormValue("zone"))
	if strings.EqualFold(name, "utc") {
		name = utcZone
	}
	if _, err := loadZone(name); err != nil || strings.EqualFold(name, "local") {
		h.writeError(w, req, http.StatusBadRequest, "Unknown time zone "+quoted(name)+"; use server, UTC or a name such as Europe/Berlin.")
		return
	}
	http.SetCookie(w, &http.Cookie{Name: zoneCookie, Value: name, Path: h.base + "/", MaxAge: int(365 * 24 * time.Hour / time.Second),
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: req.TLS != nil})
	http.Redirect(w, req, h.localPath(req.FormValue("back")), http.StatusSeeOther)
}

// Zone returns the name of the time zone of the page.
func (p page) Zone() string {
	if name := p.Now.Location().String(); name != "Local" {
		return name
	}
	return serverZone
}

// Offset returns the difference of the zone of the page from UTC, in seconds.
func (p page) Offset() int {
	_, offset := p.Now.Zone()
	return offset
}

// zoneName returns the short name of the zone of the page at a time, such as CET.
func (p page) zoneName(at time.Time) string { return at.In(p.Now.Location()).Format("MST") }
