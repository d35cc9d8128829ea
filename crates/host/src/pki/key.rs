//! A key of our own, before there is a certificate for it.

use rcgen::{CertificateParams, DnType, KeyPair, PKCS_ECDSA_P256_SHA256, PublicKeyData};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

use super::leaf::public_key;
use super::{Credential, Error, one_block};

/// A P-256 key. Nothing that formats it shows it but [`Key::pem`].
pub struct Key(KeyPair);

impl Key {
    /// A new key.
    pub fn create() -> Result<Self, Error> {
        KeyPair::generate().map(Self).map_err(Error::Make)
    }

    /// A key from the one PEM block that these bytes are.
    pub fn from_pem(bytes: &[u8]) -> Result<Self, Error> {
        let der = one_block(bytes, "PRIVATE KEY").ok_or(Error::NotOneKey)?;
        KeyPair::from_pkcs8_der_and_sign_algo(&der.into(), &PKCS_ECDSA_P256_SHA256)
            .map(Self)
            .map_err(|_| Error::NotOneKey)
    }

    /// The key as PEM. A secret.
    pub fn pem(&self) -> String {
        super::pem("PRIVATE KEY", self.0.serialized_der())
    }

    /// Asks for a client certificate of this user in this group, as PEM.
    pub fn request(&self, user: &str, group: &str) -> Result<String, Error> {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params
            .distinguished_name
            .push(DnType::OrganizationName, group);
        params.distinguished_name.push(DnType::CommonName, user);
        let request = params.serialize_request(&self.0).map_err(Error::Make)?;
        Ok(super::pem("CERTIFICATE REQUEST", request.der()))
    }

    /// The key with a certificate that was issued for it, and for no other.
    pub fn certified(&self, certificate: CertificateDer<'static>) -> Result<Credential, Error> {
        if public_key(&certificate)? != self.0.der_bytes() {
            return Err(Error::NotItsKey);
        }
        let key = PrivatePkcs8KeyDer::from(self.0.serialize_der());
        Ok(Credential { certificate, key })
    }
}
